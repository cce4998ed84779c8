"""Lists the traces that are included in `harness`, with their descriptions and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.base.errors import InputError
from harness.base.options import did_you_mean

_PLACES = (Path(__file__).parent / "bundled", Path(__file__).parents[2] / "traces")
"""The folders that contain bundled traces, in an installed package and in a checkout."""


@dataclass(frozen=True, slots=True)
class Bundled:
    """A trace that is included in `harness`.

    Attributes:
        plugins: the schedulers that a demo compares.
        until: the time at which the replay of a demo ends, or None for the whole trace.
        shake: the number of twins that a demo replays, as text. Twins are slightly varied copies of the
            trace, and give confidence intervals. None means a single replay of the trace itself.
    """

    about: str
    plugins: tuple[str, ...]
    until: str | None = None
    shake: str | None = None


BUNDLED: Mapping[str, Bundled] = {
    "mix": Bundled(
        "a synthetic mix of four tenants with priorities and gangs: 7,512 jobs on 120 GPUs",
        ("none", "fairsharing"),
        until="1d",
        shake="4",
    ),
    "openb": Bundled(
        "pods that share GPUs at Alibaba, for packing: 7,238 pods on 10 nodes", ("none", "default-preemption")
    ),
    "philly": Bundled("virtual clusters of GPUs at Microsoft: 82,247 jobs on 640 GPUs", ("none",)),
    "hpc2n": Bundled("an HPC cluster of 240 processors in Umeå: 202,871 jobs of 257 users", ("none",)),
}
"""The traces by name, where the traces with the fastest replays come first."""


def bundled_path(name: str) -> Path:
    """Returns the file of a bundled trace. The manifests of its cluster are in the same folder.

    Raises:
        InputError: the trace does not exist, or was not installed.
    """
    if name not in BUNDLED:
        raise InputError(f"harness includes no trace {name!r}", hint=did_you_mean(name, BUNDLED))
    for place in _PLACES:
        if (place / f"{name}.parquet").is_file():
            return place / f"{name}.parquet"
    raise InputError(
        f"the trace {name!r} was not installed",
        hint="a checkout of the repository has this trace in the folder 'traces'",
    )
