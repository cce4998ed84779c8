"""Options of every command that makes runs: what interruptions cost, and where runs are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

_OF_PREEMPTIONS = (
    click.option(
        "--on-preemption", default="restart", show_default=True, metavar="MODEL",
        help="What a preempted job loses: restart, resume, or checkpoint=INTERVAL[,restore=COST].",
    ),
    click.option(
        "--grace-period", default="30s", show_default=True, metavar="TIME",
        help="How long preempted pods keep their resources, for jobs that do not say.",
    ),
    click.option(
        "--startup", default="0s", show_default=True, metavar="TIME",
        help="How long pods take until they are ready, before a job's run time counts, where the trace has "
        "no column for it.",
    ),
)  # fmt: skip


def interrupted(command: _F) -> _F:
    """Adds the options that say what pods and jobs lose when they begin and end."""
    for option in reversed(_OF_PREEMPTIONS):
        command = option(command)
    return command


def kept(command: _F) -> _F:
    """Adds the option that says where runs are kept."""
    return click.option(
        "-o", "--output", type=click.Path(path_type=Path), default=Path("results"), show_default=True,
        metavar="DIR", help="Runs are kept as DIR/TRACE/RUN.",
    )(command)  # fmt: skip
