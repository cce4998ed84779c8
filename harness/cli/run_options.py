"""Options of replay commands for the scheduler, the cost of preemptions, and the folder of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.cli.context import complete_policies
from harness.runs.settings import SETTINGS

_F = TypeVar("_F", bound=Callable[..., Any])

baseline_option = click.option(
    "--baseline", metavar="LABEL",
    help="Label or folder of the run to compare the other runs with. [default: the first run]",
)  # fmt: skip


def workers_option(
    what: str, default: str = "one per core, or fewer if memory is short"
) -> Callable[[_F], _F]:
    """Returns a decorator that adds the option for the number of processes.

    `what` is a sentence for the help, and `default` is the default number in words.
    """
    return click.option(
        "--workers", type=click.IntRange(min=1), metavar="N", help=f"{what} [default: {default}]"
    )


twin_workers = workers_option("Replay N twins in parallel.")


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


def setting_options(*names: str) -> Callable[[_F], _F]:
    """Returns a decorator that adds the options for some settings of a replay, in this order."""

    def decorated(command: _F) -> _F:
        for name in reversed(names):
            setting = SETTINGS[name]
            plain = isinstance(setting.default, bool)
            command = click.option(
                f"--{name.replace('_', '-')}",
                is_flag=plain,
                type=click.Choice(setting.choices) if setting.choices else None,
                default=setting.default,
                show_default=not plain,
                metavar=setting.metavar,
                help=setting.help,
            )(command)
        return command

    return decorated


def folder_option(what: str, default: str = "results") -> Callable[[_F], _F]:
    """Returns a decorator that adds the option for a folder of results. `what` is a sentence for the help."""
    return click.option(
        "-o", "--output", type=click.Path(path_type=Path), default=Path(default), show_default=True,
        metavar="DIR", help=what,
    )  # fmt: skip


kept = folder_option("Store runs as DIR/TRACE/RUN.")

live_plugin = one_plugin(
    "Kueue's plugin if there are ClusterQueues, that of elastic quotas if there are such quotas, else "
    "default-preemption"
)
