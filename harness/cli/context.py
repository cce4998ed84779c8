"""Code that subcommands share. Plugins are loaded only once, and only if they are needed."""

from __future__ import annotations

import shlex
from collections.abc import Container, Mapping

import click

from harness.base.errors import HarnessError, PluginError, is_of_plugin, told
from harness.cli.screen import results_only
from harness.plugins import Plugins, load
from harness.plugins.loading import third_parties

ARGUMENTS = "harness.cli.arguments"
"""The key in a context's `meta` under which the original arguments are stored."""


class PluginChoice:
    """The chosen plugins, which are loaded at the first use."""

    def __init__(self, blocked: tuple[str, ...] = ()) -> None:
        self.blocked = blocked
        self._loaded: Plugins | None = None
        self._commands: Mapping[str, tuple[str, click.Command]] | None = None

    def load(self) -> Plugins:
        """Returns the plugins.

        Raises:
            PluginError: two plugins clash, or a blocked plugin is not installed.
        """
        if self._loaded is None:
            with results_only():
                self._loaded = load(block=self.blocked)
        return self._loaded

    def commands(self, *, taken: Container[str] = ()) -> dict[str, click.Command]:
        """Returns the subcommands that plugins add.

        `taken` are the names of harness's own commands.

        Raises:
            PluginError: a plugin fails to add its commands, or adds a command that already exists.
        """
        return {name: command for name, (_, command) in self._added(taken).items()}

    def owner(self, command: str, *, taken: Container[str] = ()) -> str:
        """Returns the name of the plugin that adds a command. Raises the same errors as `commands`."""
        return self._added(taken)[command][0]

    def _added(self, taken: Container[str]) -> Mapping[str, tuple[str, click.Command]]:
        if self._commands is None:
            self._commands = _added(self._third_parties(), taken)
        return self._commands

    def _third_parties(self) -> Plugins:
        """Returns the plugins of other distributions, because built-in plugins add no commands."""
        with results_only():
            return load(only=third_parties() - set(self.blocked))


def _added(plugins: Plugins, taken: Container[str]) -> Mapping[str, tuple[str, click.Command]]:
    added: dict[str, tuple[str, click.Command]] = {}
    for hook in plugins.hooks.harness_register_commands.get_hookimpls():
        owner, group = hook.plugin_name, click.Group()
        try:
            with results_only():
                hook.function(*((group,) if hook.argnames else ()))
        except BaseException as error:
            if not (isinstance(error, HarnessError) or is_of_plugin(error)):
                raise
            raise PluginError(
                f"plugin {owner!r} failed to add its commands: {told(error)}",
                hint=f"leave it out: --no-plugin {owner}",
            ) from error
        for name, command in group.commands.items():
            if name in taken or name in added:
                other = added[name][0] if name in added else "harness"
                raise PluginError(
                    f"command {name!r} is registered by both {other!r} and {owner!r}",
                    hint=f"leave one out: --no-plugin {owner}",
                )
            added[name] = owner, command
    return added


def command_line(ctx: click.Context) -> str:
    """Returns the command line as the user typed it."""
    return shlex.join(["harness", *ctx.find_root().meta.get(ARGUMENTS, ())])


def complete_policies(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Returns the names of policies that start with `incomplete`, for shell completion."""
    return [name for name in loaded_plugins(ctx).policies.names() if name.startswith(incomplete)]


def loaded_plugins(ctx: click.Context) -> Plugins:
    """Returns the plugins for a subcommand."""
    choice = ctx.find_object(PluginChoice)
    return (choice or PluginChoice()).load()
