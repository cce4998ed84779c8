"""What a finished run is the answer to: the request that was made for it, or the same made again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import InputError, RunError
from harness.base.files.standard_input import STANDARD_INPUT
from harness.plugins import Plugins
from harness.runs.estimates.run_times import DRAW
from harness.runs.inputs import cluster_for, read_trace
from harness.runs.request import Request
from harness.runs.run import Run
from harness.trace.calibration import Calibration

if TYPE_CHECKING:
    from harness.cluster.model import Cluster


def request_of(run: Run, plugins: Plugins, *, has: str = "", option: str = "--isolated") -> Request:
    """What a run is the answer to: what was asked for, or the same as far as the run says it.

    Args:
        run: the run.
        plugins: what it uses.
        has: for messages, what there is of what is to be made, such as `has no twins, and `.
        option: the option of `harness replay` that makes the run with what is to be made.

    Raises:
        RunError: asked for again it would be another run, or none; says why.
    """
    if (quota := run.info["settings"].get("alone")) is not None:
        raise RunError(
            f"{run.path} has quota {quota!r} alone, and neither twins nor other quotas",
            hint="give the run of all quotas",
        )
    try:
        request = run.request or _told(run, plugins)
        found = request.plan(plugins).run_name
    except InputError as error:
        raise RunError(
            f"{run.path} {has}cannot be replayed: {error.message}", hint=_replaying(run, option)
        ) from error
    if found != run.info["run"]:
        why = "the code, the trace, the manifests or what was done to them is not the same now"
        raise RunError(f"{run.path} {has}cannot be replayed: {why}", hint=_replaying(run, option))
    return request


def _told(run: Run, plugins: Plugins) -> Request:
    """The request that a run tells of.

    Raises:
        InputError: its cluster cannot be read once more.
    """
    info, settings = run.info, run.info["settings"]
    calibration = Calibration.parse(**settings.get("calibration", {}))
    return Request(
        info["provenance"]["trace"],
        plugin=info["policy"]["name"],
        cluster=_cluster(info, plugins, calibration),
        options=info["policy"]["options"],
        label=info["label"],
        on_preemption=settings["on_preemption"],
        grace_period=settings["grace_period_us"],
        startup=settings.get("startup_us", 0),
        until=settings["until_us"],
        scale_arrivals=settings["scale_arrivals"],
        calibration=calibration,
        output=run.path.parent.parent,
        at_start=settings.get("at_start"),
        unfinished=settings.get("unfinished", DRAW),
        seed=settings.get("seed", 0),
        ignore_events=settings.get("ignore_events", False),
    )


def _cluster(info: Mapping[str, Any], plugins: Plugins, calibration: Calibration) -> Cluster | Path | None:
    """The cluster of a run before it was scaled; None where it was made from the trace.

    Raises:
        InputError: it is not known what it was read from, or that cannot be read.
    """
    provenance = info["provenance"]
    source, files = provenance["cluster"], provenance.get("cluster_files")
    if not files:
        if info["cluster"]["assumed"] or not source:
            return None
        if files is None and not _is_there(source):
            raise InputError(f"it does not say which files its cluster was read from ({source})")
        if not _is_there(source):
            raise InputError(f"its cluster was made in memory, and no file has it ({source})")
        return Path(source)
    if str(STANDARD_INPUT) in files:
        raise InputError("its cluster was read from standard input")
    manifests, *patches = files
    if not patches:
        return Path(manifests) if manifests else None
    cluster = cluster_for(manifests or None, read_trace(provenance["trace"], plugins, calibration))
    for patch in patches:
        cluster = cluster.patched(patch)
    return cluster


def _is_there(source: str) -> bool:
    """Whether what a cluster is called is what it can be read from."""
    from harness.cluster.yaml.sources import sources

    return all(path.exists() for path in sources(Path(source)))


def _replaying(run: Run, option: str) -> str:
    """What to do instead: its command, with an option in place of the same one that it had before."""
    command = run.info["provenance"].get("command")
    if not command:
        called = {
            "--shake": "harness.compare(runs, shake=N)",
            "--isolated": "harness.isolated(runs)",
            "--idle-causes": "harness.idle_causes(runs)",
        }
        return f"{called[option.split()[0]]} where it was replayed"
    again = shlex.join([*_without(shlex.split(command), option), *option.split()])
    return f"replay it with them: {again}"


def _without(command: list[str], option: str) -> Iterator[str]:
    """The words of a command but for an option and its value, if it has one."""
    name, *value = option.split()
    words = iter(command)
    for word in words:
        if word == name:
            if value:
                next(words, None)
        elif not (value and word.startswith(f"{name}=")):
            yield word
