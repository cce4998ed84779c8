"""The command line. Each subcommand has its own module, which is imported when the subcommand is used."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from harness.base.collector import collect_seldom
from harness.base.errors import HarnessError, InputError, blamed_on
from harness.cli.context import ARGUMENTS, PluginChoice
from harness.cli.failure import end_like_ctrl_c, ended, is_shortage, open_what_is_closed, warnings_in_words
from harness.cli.group import Group
from harness.cli.screen import guard_terminals

COMMANDS = {
    "replay": "Replay a trace through scheduler plugins and measure what they do.",
    "demo": "Replay one of the traces that come with harness.",
    "sweep": "Replay many settings as one experiment.",
    "tune": "Search for weights, quotas and settings that are better than today's.",
    "bench": "Score policies in named tasks, and check submissions.",
    "reproduce": "Replay published results, and show our figures next to the published ones.",
    "experiment": "Show the results of an experiment, or compare its settings.",
    "compare": "Compare finished runs of the same jobs.",
    "report": "Write a report of finished runs of the same jobs.",
    "export": "Write a finished run for Perfetto, or for Prometheus and Grafana.",
    "validate": "Judge a simulation against the events recorded in a trace.",
    "forecast": "Forecast when waiting work in a live cluster starts.",
    "simulate": "Show whether a job would start now, or which changes would let it start.",
    "explain": "Explain what happened to a job, in a queue, or at a given time.",
    "diff": "Show where two runs of the same jobs first differ, and which jobs gained or lost as a result.",
    "trace": "Check, describe, record, convert and generate job traces.",
    "cluster": "Check, patch, convert or create cluster manifests.",
    "conform": "Compare plugins with recorded decisions of the schedulers that they model.",
    "plugins": "List plugins and what they register, or start a new one.",
    "mcp": "Serve harness to AI assistants as tools over stdio.",
    "completion": "Print a completion script for a shell.",
}
"""Maps a subcommand to its one-line help, so that `--help` imports no subcommand.

The module `harness.cli.NAME` defines the subcommand NAME.
"""

_COMPLETE = "_HARNESS_COMPLETE"
_DEBUG = "--debug"

_JEMALLOC = "_RJEM_MALLOC_CONF"
"""The variable that jemalloc, the allocator of polars, reads when it is loaded. Others ignore it."""

_OPENBLAS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""The environment variables that OpenBLAS reads when it is loaded. It uses the first variable that is set."""


class LazyGroup(Group):
    """A group that imports a command when the command is called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments as click does, and keep them for the provenance of a run."""
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns harness's commands in their usual order, followed by the commands of plugins."""
        return [*COMMANDS, *sorted(_theirs(ctx))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command with this name, or return None if there is no such command."""
        if cmd_name in COMMANDS:
            command = getattr(import_module(f"harness.cli.{cmd_name}"), cmd_name)
            assert isinstance(command, click.Command)
            return command
        return _theirs(ctx).get(cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command as click does. If a plugin's command fails, the error names the plugin.

        Raises:
            PluginError: the command of a plugin failed with an unexpected error.
        """
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, OSError):
            raise
        except Exception as error:
            name = ctx.invoked_subcommand
            if name is None or name in COMMANDS or is_shortage(error):
                raise
            owner = _choice(ctx).owner(name, taken=COMMANDS)
            with blamed_on(f"plugin {owner!r} failed in its command {name}"):
                raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing harness's own commands.

        The list appears even if a plugin is broken.
        """
        rows, missing = list(COMMANDS.items()), ""
        try:
            rows += [(name, each.get_short_help_str(80)) for name, each in sorted(_theirs(ctx).items())]
        except HarnessError as error:
            missing = f"Commands of plugins are missing: {'; '.join(filter(None, (str(error), error.hint)))}."
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        if missing:
            formatter.write_paragraph()
            formatter.write_text(missing)


def _theirs(ctx: click.Context) -> dict[str, click.Command]:
    return _choice(ctx).commands(taken=COMMANDS)


def _choice(ctx: click.Context) -> PluginChoice:
    """Returns the chosen plugins, even if click prints help before it calls the group."""
    return ctx.find_object(PluginChoice) or PluginChoice(ctx.params.get("blocked", ()))


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from harness.base.build import version

        click.echo(f"harness, version {version()}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  harness replay traces/philly.parquet --plugin none
  harness trace info traces/philly.parquet""",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version,
    help="Show the version and exit.",
)  # fmt: skip
@click.option(
    "--no-plugin", "blocked", multiple=True, metavar="NAME", is_eager=True,
    help="Do not load this plugin; may be repeated.",
)  # fmt: skip
@click.option(_DEBUG, is_flag=True, expose_value=False, help="Show where in the code an error came from.")
@click.pass_context
def cli(ctx: click.Context, blocked: tuple[str, ...]) -> None:
    """Replay job traces through models of real cluster schedulers, and compare what they do."""
    ctx.obj = PluginChoice(blocked)


def _check_stdout(*, mute: bool) -> None:
    if mute:
        raise InputError(
            "stdout is closed, so the results would be lost",
            hint="redirect stdout to a file or a pipe; > /dev/null discards the results",
        )


def main(args: list[str] | None = None) -> None:
    """Run the command line, and turn every error into a message and an exit code.

    The exit code is 0 for success, and 1 if a requested check fails. It is 2 for wrong usage, for bad input,
    or if the machine doesn't have enough resources. It is 130 after ctrl-C, 143 after SIGTERM, 129 after
    SIGHUP, and 70 for a defect in `harness` itself.
    """
    own, mute = args is None, False  # whether this process is ours, and whether stdout is closed
    if args is None:
        args = sys.argv[1:]
        mute = open_what_is_closed()
        end_like_ctrl_c()
        collect_seldom()
        compute_in_one_thread()
        keep_freed_memory()
    options = args[: args.index("--")] if "--" in args else args
    debug = _DEBUG in options  # The option may be at any position.
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # This writes `?` if a terminal can't show a character.
        if own:
            guard_terminals()
        _check_stdout(mute=mute)
        given = [text for text in options if text != _DEBUG] + args[len(options) :]
        if _COMPLETE in os.environ:
            cli.main(prog_name="harness")
        # We do not call click's main(): its exit codes for ctrl-C and for broken pipes differ from ours.
        with warnings_in_words(), cli.make_context("harness", given) as ctx:
            cli.invoke(ctx)
    except SystemExit:
        raise
    except BaseException as error:  # A panic of polars is not an Exception.
        sys.exit(ended(error, debug=debug))


def keep_freed_memory() -> None:
    """Let polars keep freed memory for ten seconds, unless the user has set a time.

    harness writes tables in chunks of tens of megabytes. By default, polars returns this memory to the system
    after half a second, before the next chunk. The system must then clear the memory again for the next
    chunk, which takes 1 % of the time of a replay. Ten seconds are jemalloc's own default.
    """
    os.environ.setdefault(_JEMALLOC, "dirty_decay_ms:10000")


def compute_in_one_thread() -> None:
    """Let numpy use one thread for linear algebra, here and in children, unless the user has set a number.

    When numpy is loaded, OpenBLAS starts one thread for each core, and each thread spins for a while before
    it sleeps. On two cores, this is half of the cost of loading numpy. OpenBLAS is only used for matrix
    products. A replay computes none, and a comparison computes only a few small products. In one thread,
    their last digits don't depend on the number of cores.
    """
    if not any(name in os.environ for name in _OPENBLAS):
        os.environ[_OPENBLAS[0]] = "1"
