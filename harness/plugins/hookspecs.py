"""The hooks that a plugin of `harness` can implement.

A plugin is an installed module with an entry point in the group `harness`. Its hooks are functions with the
decorator `harness.hookimpl`. harness calls hooks when it starts and when a replay starts or ends, but never
for individual jobs or events. Therefore, the cost of hooks doesn't depend on the size of a trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import click

    from harness.plugins.conformance import RegisterConformance
    from harness.plugins.kind import RegisterKind
    from harness.plugins.registries import RegisterMetric, RegisterPolicy, RegisterReader
    from harness.plugins.section import RegisterSection
    from harness.runs.plan import Plan
    from harness.runs.run import Run

hookspec = pluggy.HookspecMarker("harness")
hookimpl = pluggy.HookimplMarker("harness")


# --- what a plugin adds: called once, when plugins are loaded ---------------------------------------------


@hookspec
def harness_register_policies(register: RegisterPolicy) -> None:
    """Register policy factories: `register(name, factory, help=..., options=(...), clairvoyant=False)`."""


@hookspec
def harness_register_readers(register: RegisterReader) -> None:
    """Register trace readers: `register(name, read, help=..., suffixes=(...), options=(...))`."""


@hookspec
def harness_register_kinds(register: RegisterKind) -> None:
    """Register kinds of manifests: `register(group, kind, versions=(...), read=..., coverage=..., ...)`."""


@hookspec
def harness_register_metrics(register: RegisterMetric) -> None:
    """Register metrics over a finished run: `register(name, compute, help=...)`."""


@hookspec
def harness_register_sections(register: RegisterSection) -> None:
    """Register sections of reports: `register(name, make, title=..., help=..., place=...)`."""


@hookspec
def harness_register_conformance(register: RegisterConformance) -> None:
    """Register components whose recorded cases a plugin answers: `register(name, answer, help=...)`."""


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
