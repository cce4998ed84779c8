"""What sub-commands share: the plugins, loaded once and only when somebody asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from harness.plugins import Plugins


class PluginChoice:
    """Which plugins to use; they are loaded when first needed.

    Args:
        blocked: plugins to leave out.
    """

    def __init__(self, blocked: tuple[str, ...] = ()) -> None:
        self.blocked = blocked
        self._loaded: Plugins | None = None
        self._commands: dict[str, click.Command] | None = None

    def load(self) -> Plugins:
        """The plugins.

        Raises:
            PluginError: two of them clash, or a blocked one is not installed.
        """
        if self._loaded is None:
            from harness.plugins import load

            self._loaded = load(block=self.blocked)
        return self._loaded

    def commands(self) -> dict[str, click.Command]:
        """The sub-commands that plugins add."""
        if self._commands is None:
            group = click.Group()
            self.load().hooks.harness_register_commands(cli=group)
            self._commands = dict(group.commands)
        return self._commands


def loaded_plugins(ctx: click.Context) -> Plugins:
    """The plugins for a sub-command."""
    choice = ctx.find_object(PluginChoice)
    return (choice or PluginChoice()).load()
