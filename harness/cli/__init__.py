"""The command line: one file a sub-command, loaded when it is used."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.metadata import version

import click

from harness.cli.context import PluginChoice
from harness.errors import HarnessError
from harness.options import did_you_mean

COMMANDS = {
    "replay": ("harness.cli.replay", "Replay a trace through scheduler plugins and measure what they do."),
    "compare": ("harness.cli.compare", "Compare finished runs of one trace."),
    "trace": ("harness.cli.trace", "Check, describe and convert job traces."),
    "cluster": ("harness.cli.cluster", "Check cluster manifests."),
    "conform": ("harness.cli.conform", "Compare plugins with recorded decisions of what they model."),
    "plugins": ("harness.cli.plugins", "List plugins and what they bring."),
}
"""Sub-command -> its module and its one-line help, so that `--help` imports none of them."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Our commands in their natural order, then those of plugins."""
        choice = ctx.find_object(PluginChoice)
        theirs = sorted(choice.commands()) if choice is not None else []
        return [*COMMANDS, *(name for name in theirs if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by name, imported now; None when there is none."""
        if cmd_name in COMMANDS:
            command = getattr(import_module(COMMANDS[cmd_name][0]), cmd_name)
            assert isinstance(command, click.Command)
            return command
        choice = ctx.find_object(PluginChoice)
        return choice.commands().get(cmd_name) if choice is not None else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, but a mistyped command says what was probably meant."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing ours."""
        choice = ctx.find_object(PluginChoice)
        rows = [(name, help_text) for name, (_, help_text) in COMMANDS.items()]
        if choice is not None:
            rows += [
                (name, command.get_short_help_str(80))
                for name, command in sorted(choice.commands().items())
                if name not in COMMANDS
            ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  harness replay traces/philly.parquet --plugin none
  harness trace info traces/philly.parquet""",
)
@click.version_option(version("harness-replay"), prog_name="harness")
@click.option(
    "--no-plugin", "blocked", multiple=True, metavar="NAME", help="Leave a plugin out; may be repeated."
)
@click.option("--debug", is_flag=True, help="Show where in the code an error came from.")
@click.pass_context
def cli(ctx: click.Context, blocked: tuple[str, ...], debug: bool) -> None:
    """Replay job traces through models of real cluster schedulers, and compare what they do."""
    ctx.obj = PluginChoice(blocked)


def main(args: list[str] | None = None) -> None:
    """Run the command line; every foreseen error becomes a message and an exit code."""
    given = sys.argv[1:] if args is None else args
    try:
        cli.main(args=given, prog_name="harness", standalone_mode=False)
    except HarnessError as error:
        if "--debug" in given:
            raise
        _complain(error.message, error.hint)
        sys.exit(error.exit_code)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        _complain("interrupted; nothing was left half-written", None)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): that is its right, and no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _complain(message: str, hint: str | None) -> None:
    from harness.text import printable

    lines = [printable(line) for line in f"Error: {message}".split("\n")]
    if hint:
        lines += [printable(line) for line in f"Hint: {hint}".split("\n")]
    click.echo("\n".join(lines), err=True)
