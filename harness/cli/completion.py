"""`harness completion` prints the completion script for a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog="""\b
Examples:
  harness completion bash
  harness completion zsh"""
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script with which a shell completes commands, options and plugins.

    To enable completion in every new shell, write the script to

    \b
    ~/.local/share/bash-completion/completions/harness   for bash
    DIR/_harness, where DIR is in $fpath                  for zsh
    ~/.config/fish/completions/harness.fish               for fish
    """  # noqa: D301 - `\b` keeps click from joining the lines
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "harness", "_HARNESS_COMPLETE").source())
