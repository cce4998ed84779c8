"""What happened in a replay: all that the engine tells, and what of it makes a difference to jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dumps.worlds import NOWHERE
from harness.engine.events import (
    ACTIONS,
    ADMIT,
    BIND,
    EVICT,
    FINISH,
    NEVER,
    PREEMPT,
    REJECT,
    START,
    Fact,
    NullRecorder,
)


class Event(NamedTuple):
    """Something that happened to a job.

    Attributes:
        time: when, microseconds since the origin.
        action: the engine's word.
        job: namespace and name.
        where: the node, or flavors; "" where there is neither.
    """

    time: int
    action: str
    job: str
    where: str


class Observed(NullRecorder):
    """Keeps what happens.

    Attributes:
        facts: all of it, in order.
        bound_at: when each pod was bound last, by the job's index and its number.
    """

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.bound_at: dict[tuple[int, int], int] = {}

    def record(self, fact: Fact) -> None:
        """See `harness.engine.events.Recorder`."""
        self.facts.append(fact)
        if fact.action == BIND:
            self.bound_at[fact.job.index, fact.pod] = fact.time

    def last(self, job: int, *actions: int, pod: int | None = None) -> Fact | None:
        """The last of these things that happened to a job, or to one of its pods."""
        return next(
            (
                fact
                for fact in reversed(self.facts)
                if fact.job.index == job
                and fact.action in actions
                and (pod is None or fact.pod in (NEVER, pod))
            ),
            None,
        )

    def events(self, since: int) -> Iterator[Event]:
        """What happened to jobs from the fact with this number on."""
        for fact in self.facts[since:]:
            name, action = fact.job.id, fact.action
            if fact.job.queue == NOWHERE or action not in (
                ADMIT,
                START,
                BIND,
                PREEMPT,
                EVICT,
                FINISH,
                REJECT,
            ):
                continue
            if action == ADMIT:
                yield Event(fact.time, "admit", name, flavors_text(fact.flavors or {}))
                if fact.holding == 1:
                    yield Event(fact.time, "start", name, "")
                continue
            name = first_name(name)
            yield Event(fact.time, ACTIONS[action], name, fact.node or "")


def first_name(name: str) -> str:
    """What a pod was called before it was evicted for the first time: its k-th successor is `pod-r<k>`."""
    return re.sub(r"-r\d+$", "", name)


def flavors_text(flavors: Mapping[str, Mapping[str, str]]) -> str:
    """Flavors of pod sets, as text."""
    several = {name: sorted(of_pod_set.items()) for name, of_pod_set in sorted(flavors.items())}
    return " ".join(
        f"{name}:{resource}={flavor}" for name, each in several.items() for resource, flavor in each
    )
