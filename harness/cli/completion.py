"""`harness completion`: prints the script with which a shell completes words of the command."""

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
    """Print a script that makes a shell complete commands, options and plugins.

    To have it in every shell from now on, write it to

    \b
    ~/.local/share/bash-completion/completions/harness   for bash
    DIR/_harness, where DIR is in $fpath                  for zsh
    ~/.config/fish/completions/harness.fish               for fish
    """  # noqa: D301 - the sign keeps click from filling the lines
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "harness", "_HARNESS_COMPLETE").source())
