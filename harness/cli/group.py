"""A group of commands that lists them with whole sentences and corrects mistyped ones."""

from __future__ import annotations

import click

from harness.base.options import did_you_mean

_LONGEST = 200


class Group(click.Group):
    """A click group that lists whole sentences about its commands, and gives hints in every version."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the first sentence about each command; click's own list cuts it off at the end of the line."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [
            (name, each.get_short_help_str(_LONGEST)) for name, each in commands.items() if each is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command as click does; a mistyped one gives a hint about what was probably meant."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)
