"""The options that change a trace and its cluster, for every command that reads a trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

_OF_TRACE = {
    "window": ("START..END", "Only jobs submitted then: durations since the origin, or dates."),
    "sample": ("SHARE[@SEED]", "Only so many of the jobs, each whole, chosen by the seed."),
    "priority_from": ("COLUMN=V:P,...", "Priorities by a column: queue=prod:100,*:0."),
    "priority_share": ("S:P,...[@SEED]", "Priorities of a share of each queue's jobs, as 0.2:1000@7."),
    "tenants": (
        "STEPS",
        "Tenants of the jobs: column:user, top:20, hash:8, names, map:FILE; several by commas.",
    ),
}
_OF_CLUSTER = {"scale_cluster": ("FACTOR", "So many times the nodes and quotas, such as 1/8.")}
_OF_FAILURES = {
    "mtbf": ("[POOL=]SPAN,...", "Mean time between failures of a node, such as 30d; by NodePool if named."),
    "mttr": ("SPAN", "Mean time until a failed node returns. [default: 4h]"),
    "failure_shape": ("K", "Of the Weibull distribution of times to failure. [default: 1, exponential]"),
    "together": ("LABEL", "Nodes with one value of this label fail together."),
    "failure_seed": ("N", "Of the failures; each twin of --shake has failures of its own. [default: 0]"),
}


def calibrated(*, cluster: bool, failures: bool = False) -> Callable[[_F], _F]:
    """Returns a decorator that adds the options to a command, which gets one `calibration` for them.

    Args:
        cluster: whether the command has a cluster, which can be scaled.
        failures: whether nodes of that cluster may fail.
    """
    steps = {**_OF_TRACE, **(_OF_CLUSTER if cluster else {})}
    options = {**steps, **(_OF_FAILURES if failures else {})}

    def decorate(command: _F) -> _F:
        @wraps(command)
        def called(*args: Any, **given: Any) -> Any:
            from harness.trace.calibration import Calibration

            texts = {name: given.pop(name) for name in steps}
            model = {name.removeprefix("failure_"): given.pop(name) for name in options if name not in steps}
            if any(text is not None for text in model.values()):
                texts["failures"] = " ".join(
                    f"{name}:{text}" for name, text in model.items() if text is not None
                )
            return command(*args, calibration=Calibration.parse(**texts), **given)

        made: Any = called
        for name, (form, help_text) in reversed(options.items()):
            made = click.option(f"--{name.replace('_', '-')}", name, metavar=form, help=help_text)(made)
        return made  # type: ignore[no-any-return]

    return decorate
