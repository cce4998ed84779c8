"""A group of commands that lists a full sentence for each command, and corrects mistyped names."""

from __future__ import annotations

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
        """Find a command as click does. If a name is mistyped, the error suggests a similar command."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)
