"""Options of commands that replay: the scheduler, the cost of interruptions, the folder of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.cli.context import complete_policies

_F = TypeVar("_F", bound=Callable[..., Any])

loss_model = click.option(
    "--on-preemption", default="restart", show_default=True, metavar="MODEL",
    help="What a preempted job loses: restart, resume, or checkpoint=INTERVAL[,restore=COST].",
)  # fmt: skip
"""Adds the option for the cost of a preemption."""

_OF_PREEMPTIONS = (
    loss_model,
    click.option(
        "--grace-period", default="30s", show_default=True, metavar="TIME",
        help="How long preempted pods keep their resources, for jobs that do not give it.",
    ),
    click.option(
        "--startup", default="0s", show_default=True, metavar="TIME",
        help="How long pods take until they are ready, before a job's run time counts, if the trace has "
            "no column for it.",
    ),
)  # fmt: skip


def one_plugin(default: str) -> Callable[[_F], _F]:
    """Returns a decorator that adds options for one plugin and its options.

    `default` describes the default.
    """
    named = click.option(
        "-p", "--plugin", "name", metavar="NAME", shell_complete=complete_policies,
        help=f"Scheduler plugin. [default: {default}]",
    )  # fmt: skip
    settings = click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option of the plugin."
    )
    return lambda command: named(settings(command))


def interrupted(command: _F) -> _F:
    """Adds the options for what pods and jobs lose when they begin and end."""
    for option in reversed(_OF_PREEMPTIONS):
        command = option(command)
    return command


_OF_WORK = (
    click.option(
        "--unfinished", default="draw", show_default=True, metavar="HOW",
        help="How long unfinished Workloads and Pods of the manifests run. draw: run times of jobs that "
        "ended, as forecasts do. limit: what they may run at most. A TIME such as 2h. drop: leave them out.",
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, metavar="N",
        help="Seed of the drawn run times; twins have their own draws.",
    ),
)  # fmt: skip


def unfinished_work(command: _F) -> _F:
    """Adds the options for how long unfinished work of the manifests runs."""
    for option in reversed(_OF_WORK):
        command = option(command)
    return command


def kept(command: _F) -> _F:
    """Adds the option for the folder that holds runs."""
    return click.option(
        "-o", "--output", type=click.Path(path_type=Path), default=Path("results"), show_default=True,
        metavar="DIR", help="Runs are kept as DIR/TRACE/RUN.",
    )(command)  # fmt: skip
