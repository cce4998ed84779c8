"""The options that change a trace and its cluster. All commands that read a trace have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

_OF_TRACE = {
    "window": (
        "START..END",
        "Keep only jobs submitted in this window: two dates, or two durations since the trace's origin.",
    ),
    "sample": (
        "SHARE[@SEED]",
        "Keep a random share of the jobs, with all their pods; 0.1@7 is a tenth, drawn with seed 7.",
    ),
    "priority_from": (
        "COLUMN=V:P,...",
        "Set priorities by the values of a column, such as queue=prod:100,*:0.",
    ),
    "priority_share": (
        "S:P,...[@SEED]",
        "Give a priority to a share of each queue's jobs; 0.2:1000@7 gives 20 % the priority 1000 (seed 7).",
    ),
    "tenants": (
        "STEPS",
        "Derive the tenants of jobs in steps, comma-separated: column:user, top:20, hash:8, names, map:FILE.",
    ),
}
_OF_CLUSTER = {"scale_cluster": ("FACTOR", "Multiply nodes and quotas by this factor, such as 1/8.")}
_OF_FAILURES = {
    "mtbf": (
        "[POOL=]SPAN,...",
        "Mean time between failures of a node, such as 30d; POOL= sets it for one NodePool.",
    ),
    "mttr": ("SPAN", "Mean time to repair, from a node's failure until its return. [default: 4h]"),
    "failure_shape": (
        "K",
        "Shape of the Weibull distribution of times to failure. [default: 1, exponential]",
    ),
    "together": ("LABEL", "Nodes with the same value of this label fail together."),
    "failure_seed": ("N", "Seed of the failures; each twin of --shake has its own failures. [default: 0]"),
}


def calibrated(*, cluster: bool, failures: bool = False) -> Callable[[_F], _F]:
    """Returns a decorator that adds the options to a command, which receives one argument `calibration`.

    `cluster` says whether the command has a cluster that can be scaled, and `failures` whether its nodes may
    fail.
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
