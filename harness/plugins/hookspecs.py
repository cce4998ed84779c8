"""The hooks that a plugin of `harness` can implement.

A plugin is an installed module with an entry point in the group `harness`. Its hooks are functions with the
decorator `harness.hookimpl`. harness calls hooks when it starts and when a replay starts or ends, but never
for individual jobs or events. Therefore, the cost of hooks doesn't depend on the size of a trace.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pluggy

from harness.base.errors import PluginError

if TYPE_CHECKING:
    import click

    from harness.plugins.conformance import ConformanceSpec
    from harness.plugins.kind import KindSpec
    from harness.plugins.registries import MetricSpec, PolicySpec, ReaderSpec, Register
    from harness.plugins.section import SectionSpec
    from harness.runs.plan import Plan
    from harness.runs.run import Run

hookspec = pluggy.HookspecMarker("harness")
hookimpl = pluggy.HookimplMarker("harness")


def late(place: str) -> Callable[..., Any]:
    """Returns a function that a plugin can register before the function's module is imported.

    The module is imported when the returned function is called for the first time.

    Args:
        place: the module and the name of the function, such as `my_plugin.policy:make`.

    Raises:
        PluginError: the module or the name is missing.
    """
    module, _, name = place.partition(":")
    if not (module and name):
        raise PluginError(f"late({place!r}) names no function", hint="write it as my_plugin.policy:make")

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*arguments, **named)

    call.__module__, call.__qualname__ = module, name  # so that the code of this module counts
    return call


# --- what a plugin adds: called once, when plugins are loaded ---------------------------------------------


@hookspec
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register policy factories: `register(PolicySpec(name, factory, help=..., options=(...)))`."""


@hookspec
def harness_register_readers(register: Register[ReaderSpec]) -> None:
    """Register trace readers: `register(ReaderSpec(name, read, help=..., suffixes=(...)))`."""


@hookspec
def harness_register_kinds(register: Register[KindSpec]) -> None:
    """Register kinds of manifests: `register(KindSpec("Queue.my.group", Kind(versions, read, coverage)))`."""


@hookspec
def harness_register_metrics(register: Register[MetricSpec]) -> None:
    """Register metrics over a finished run: `register(MetricSpec(name, compute, help=...))`."""


@hookspec
def harness_register_sections(register: Register[SectionSpec]) -> None:
    """Register sections of reports: `register(SectionSpec(name, make, title=..., help=...))`."""


@hookspec
def harness_register_conformance(register: Register[ConformanceSpec]) -> None:
    """Register components whose recorded cases a plugin answers: `register(ConformanceSpec(name, ...))`."""


@hookspec
def harness_register_commands(cli: click.Group) -> None:
    """Add subcommands to the command line: `cli.add_command(...)`."""


# --- around a replay: called once for each ----------------------------------------------------------------


@hookspec
def harness_replay_started(plan: Plan) -> None:
    """Called before a replay begins. A hook can raise a `HarnessError` to stop the replay."""


@hookspec
def harness_replay_finished(run: Run) -> None:
    """Called after a replay has ended and its run folder is complete."""
