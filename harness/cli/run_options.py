"""Options of commands that replay, for the scheduler, the cost of preemptions, and the folder of runs."""

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
"""A decorator that adds the option for the cost of a preemption."""

baseline_option = click.option(
    "--baseline", metavar="LABEL",
    help="Label or folder of the run to compare the other runs with. [default: the first run]",
)  # fmt: skip


def workers_option(
    what: str, default: str = "one per core, or fewer if memory is short"
) -> Callable[[_F], _F]:
    """Returns a decorator that adds the option for the number of processes.

    Args:
        what: what the processes do, as a sentence of the help.
        default: the number without the option, in words.
    """
    return click.option(
        "--workers", type=click.IntRange(min=1), metavar="N", help=f"{what} [default: {default}]"
    )


twin_workers = workers_option("Replay N twins in parallel.")

_OF_PREEMPTIONS = (
    loss_model,
    click.option(
        "--grace-period", default="30s", show_default=True, metavar="TIME",
        help="How long preempted pods keep their resources, if their job does not specify a grace period.",
    ),
    click.option(
        "--startup", default="0s", show_default=True, metavar="TIME",
        help="Time from the start of pods until they are ready, when the run time begins. Used if the trace "
        "has no column for it.",
    ),
)  # fmt: skip


def one_plugin(default: str) -> Callable[[_F], _F]:
    """Returns a decorator that adds the option for one plugin, and `--set` for its options.

    `default` describes the default plugin in the help.
    """
    named = click.option(
        "-p", "--plugin", "name", metavar="NAME", shell_complete=complete_policies,
        help=f"Scheduler plugin. [default: {default}]",
    )  # fmt: skip
    settings = click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set an option of the plugin."
    )
    return lambda command: named(settings(command))


def interrupted(command: _F) -> _F:
    """Adds the options for the cost of preemption, the grace period and the start-up time."""
    for option in reversed(_OF_PREEMPTIONS):
        command = option(command)
    return command


_OF_WORK = (
    click.option(
        "--unfinished", default="draw", show_default=True, metavar="HOW",
        help="Run times of unfinished Workloads and Pods of the manifests. draw: drawn from those of ended "
        "jobs, as in forecasts. limit: the longest run time that is allowed. TIME, such as 2h: this time. "
        "drop: leave them out.",
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, metavar="N",
        help="Seed of the drawn run times; each twin has its own draws.",
    ),
)  # fmt: skip


def unfinished_work(command: _F) -> _F:
    """Adds the options for the run times of unfinished jobs in the manifests."""
    for option in reversed(_OF_WORK):
        command = option(command)
    return command


def kept(command: _F) -> _F:
    """Adds the option for the folder of runs."""
    return click.option(
        "-o", "--output", type=click.Path(path_type=Path), default=Path("results"), show_default=True,
        metavar="DIR", help="Store runs as DIR/TRACE/RUN.",
    )(command)  # fmt: skip
