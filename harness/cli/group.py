"""A group of commands that lists a full sentence for each command, and corrects mistyped names."""

from __future__ import annotations

from collections import Counter

import click

from harness.base.options import did_you_mean

_LONGEST = 200


class Group(click.Group):
    """A click group that lists full sentences about commands, and gives hints in any version of click."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the first sentence about each command, which click's own list would cut off."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [
            (name, each.get_short_help_str(_LONGEST)) for name, each in commands.items() if each is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command as click does. If a name is mistyped, the error suggests a similar command.

        An option that has one value may be given once, because click would ignore all values but the last.
        """
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not (ctx.resilient_parsing or isinstance(command, click.Group)):
            _refuse_repeated(click.Context(command, ctx, name), rest)
        return name, command, rest


def _refuse_repeated(ctx: click.Context, args: list[str]) -> None:
    """Refuse options that are given several times, unless they accept several values or are flags."""
    try:
        given = ctx.command.make_parser(ctx).parse_args(list(args))[2]
    except click.UsageError:
        return  # click reports it when it calls the command
    for option, count in Counter(given).items():
        if isinstance(option, click.Option) and count > 1 and not (option.multiple or option.is_flag):
            several = "; separate several by commas" if "," in (option.metavar or "") else ""
            said = f"{option.opts[0]} is given {count} times, but has one value{several}"
            raise click.UsageError(said, ctx)
