"""A group of commands that answers a mistyped one with what was probably meant."""

from __future__ import annotations

import click

from harness.options import did_you_mean


class Group(click.Group):
    """Like click's, with a hint whatever click's version."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, but a mistyped command says what was probably meant."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)
