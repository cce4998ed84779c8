"""Reports on runs. Built-in sections are registered like the sections of plugins.

Authors of sections import blocks from here; see `harness.analysis.report.blocks`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness.plugins.hookspecs import hookimpl
from harness.plugins.registries import Register
from harness.plugins.section import MakeSection, SectionSpec

if TYPE_CHECKING:
    from harness.analysis.report.blocks import (
        Block,
        Cell,
        Code,
        Figure,
        Key,
        Points,
        Score,
        Scores,
        Table,
        Text,
    )
    from harness.analysis.report.material import Material

__all__ = [
    "Block", "Cell", "Code", "Figure", "Key", "Points", "Score", "Scores", "SectionSpec", "Table", "Text",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Imports the blocks of sections on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'harness.analysis.report' has no attribute {name!r}")
    return getattr(import_module("harness.analysis.report.blocks"), name)


_BUILT_IN = (
    ("headlines", "Which one, and at what cost?", "the recommended run, its condition and its costs"),
    ("frontier", "What is traded for what", "waits against lost work, and the runs that no other run beats"),
    ("losses", "Who wins, who loses", "hours waited and work lost in each queue, and the queues that gained"),
    ("waiting", "Who waited, and how long", "waiting jobs over time, how long jobs waited, and which ones"),
    ("allocation", "Who held what, when", "what queues held over time, and their own quota"),
    ("fairness", "How fairly the cluster was shared", "the distance of shares from their ideal over time"),
    (
        "disruption",
        "What was preempted, and why",
        "preemptions over time by reason, and how they led to further preemptions",
    ),
    ("gantt", "Job by job", "every job as a bar, for small runs"),
    ("metrics", "All figures", "the metrics of all runs in one table"),
    (
        "record",
        "Against what happened",
        "a comparison of simulations with the record of what happened, if one of the runs is a record",
    ),
    ("domains", "Where it ran", "the resources that pods held in each topology domain over time"),
    (
        "assumed",
        "What this rests on",
        "the cluster, the settings, the assumptions, and how to repeat the runs",
    ),
)
_PLACES = {"record": 150, "domains": 550, "assumed": 10_000}
"""The places of sections that are not in the order of `_BUILT_IN`."""


@hookimpl
def harness_register_sections(register: Register[SectionSpec]) -> None:
    """Registers the built-in sections."""
    for number, (name, title, help_text) in enumerate(_BUILT_IN, start=1):
        place = _PLACES.get(name, 100 * number)
        register(SectionSpec(name, _section(name), title=title, help=help_text, place=place))


def _section(name: str) -> MakeSection:
    """Returns a function that imports a section's module when it is called, and makes the section."""

    def make(material: Material) -> Iterable[Block]:
        return import_module(f"harness.analysis.report.sections.{name}").blocks(material)  # type: ignore[no-any-return]

    return make
