"""Differences between the plugins, settings, traces and clusters of two runs, and sentences about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from harness.base.text import counted, first_of, shortened, told_apart

PLUGIN, OPTION, SETTING, TRACE, CLUSTER, NODES = "plugin", "option", "setting", "trace", "cluster", "nodes"
EVENTS = "events"
"""This kind and the kinds above are not kinds of Kubernetes objects."""

_NAMED = 3  # How many names to show if several objects change in the same way.
_WIDEST = 63 + 1 + 253
"""The maximum length of a name or value: the longest namespace and name that Kubernetes allows."""


class Distinction(NamedTuple):
    """A difference between two runs.

    Attributes:
        kind: the kind of an object (`ClusterQueue`), or `plugin`, `option`, `setting`, `trace`, `nodes`,
            `cluster`.
        name: the name of the object, option or setting; "" if there is only one of its kind.
        field: the field, such as `nominalQuota nvidia.com/gpu`; "" for the whole object.
        before: the value in the baseline; None if the baseline has none. For nodes, this is the number of
            nodes.
        after: the value in the other run; None if that run has none.
    """

    kind: str
    name: str
    field: str
    before: str | None
    after: str | None

    @property
    def text(self) -> str:
        """The difference as a sentence."""
        return _told([self])

    def to_json(self) -> dict[str, Any]:
        """Returns the difference as plain values, for JSON."""
        return {**self._asdict(), "text": self.text}


def summarized(distinctions: Iterable[Distinction]) -> list[str]:
    """Describes differences in sentences.

    Objects that change in the same way share one sentence. The sentences are in the order of their first
    objects.
    """
    alike: dict[tuple[object, ...], list[Distinction]] = {}
    for each in distinctions:
        counts = each.kind == NODES and not each.field  # Added or removed nodes share one sentence.
        values = (each.before is None, each.after is None) if counts else (each.before, each.after)
        alike.setdefault((each.kind, each.field, *values), []).append(each)
    return [_told(group) for group in alike.values()]


def _told(alike: Sequence[Distinction]) -> str:
    kind, _, field, before, after = alike[0]
    if kind == EVENTS:
        return f"{kind}: {after}" if before is None else f"{kind}: {before} -> {after or 'none'}"
    names = told_apart((each.name for each in alike), _WIDEST)
    listed = first_of(names, _NAMED)
    about = f"{'' if kind == SETTING else kind} {listed}".strip()
    if before is not None and after is not None:
        change = " -> ".join(told_apart((before, after), _WIDEST))
        return f"{about}: {field} {change}" if field else f"{about} {change}"
    value, how = (after, "added") if before is None else (before, "removed")
    if value is None:
        return f"{about}: {field}"  # A difference without values is a remark.
    if kind == OPTION:
        return f"{about} {shortened(value, _WIDEST)}"  # The baseline's plugin does not have this option.
    if kind == NODES:
        count = sum(int(each.before or each.after or 0) for each in alike)
        return f"{counted(count, 'node')} {how}: {listed}"
    return f"{about} {how}" + (f": {value}" if value else "")
