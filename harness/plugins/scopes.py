"""Defines scopes, which say what part of a run a value describes.

A scope is `all` or `KIND=NAME`. A *queue* is the name of a queue in the trace, such as a LocalQueue. A
*quota* limits jobs, and is a ClusterQueue or an ElasticQuota. Several queues can use the same quota, and a
queue can have no quota. A *holder* is a group of jobs that holds resources together. It is a quota, or a
queue without a quota.

This module defines all kinds of scopes. A scope of any other kind is an error everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from harness.base.errors import OptionError
from harness.base.grouping import grouped
from harness.base.options import nearest, there_is

ALL = "all"
QUEUE, QUOTA, PRIORITY, USER = "queue", "quota", "priority", "user"
REASON, BENEFICIARY = "reason", "beneficiary"

KINDS: Mapping[str, str] = {
    ALL: "everything",
    QUEUE: "the jobs that name a queue",
    QUOTA: "a ClusterQueue or ElasticQuota, or the jobs that use its quota",
    PRIORITY: "the jobs of a priority",
    USER: "the jobs of a user; `(none)` stands for jobs without a user",
    REASON: "the preemptions with one reason, or the evictions with one cause",
    BENEFICIARY: "the preemptions for jobs that name a queue",
}
"""Maps a kind of scope to a description of the values with this scope."""


class Scope(NamedTuple):
    """A single scope, or all scopes of a kind.

    Attributes:
        kind: one of `KINDS`.
        name: the name of the queue, reason and so on. It is "" for `all` and for all scopes of a kind.
    """

    kind: str
    name: str = ""

    @property
    def text(self) -> str:
        """The scope in the form in which users write it."""
        return _written(self.kind, self.name)

    def holds(self, scope: str) -> bool:
        """Returns True if a value with the given scope belongs to this scope.

        If this scope has no name, all values of its kind belong to it.
        """
        return scope == self.text or (not self.name and scope.startswith(f"{self.kind}="))


def parse_scope(text: str) -> Scope:
    """Parse a scope.

    Raises:
        OptionError: the kind doesn't exist. The message lists the existing kinds.
    """
    kind, equals, name = text.partition("=")
    if kind in KINDS and not (equals and (kind == ALL or not name)):
        return Scope(kind, name)
    close = nearest(kind, KINDS)
    meant = "" if close is None else f"did you mean {_written(close, name)!r}? "
    raise OptionError(
        f"no metric is measured for scope {text!r}",
        hint=f"{meant}{there_is(KINDS)}; write KIND=NAME to select one of a kind, such as queue=prod",
    )


def hint_at(scope: Scope, known: Iterable[str]) -> str:
    """Returns a hint for an unknown scope, which suggests a similar scope and lists the existing scopes.

    Args:
        scope: the scope.
        known: the existing scopes, as text.
    """
    kinds = grouped((kind, name) for kind, _, name in sorted(each.partition("=") for each in set(known)))
    if not scope.name:
        return there_is(kinds)
    of_kind = kinds.get(scope.kind, [])
    close = nearest(scope.name, of_kind)
    meant = [_written(scope.kind, close)] if close is not None else []
    meant += [_written(kind, scope.name) for kind, names in kinds.items() if scope.name in names]
    there = there_is(_written(scope.kind, name) for name in of_kind) if of_kind else there_is(kinds)
    return f"did you mean {meant[-1]!r}? {there}" if meant else there


def _written(kind: str, name: str) -> str:
    return kind if kind == ALL or not name else f"{kind}={name}"
