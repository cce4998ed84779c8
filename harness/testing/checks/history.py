"""Follows the decisions of a run one by one, and checks whether they are possible, in order and on time."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from harness.engine.events import ACTIONS
from harness.testing.checks.facts import Broken, Facts, Row
from harness.testing.checks.life import IllegalError, Life

_DELIVERED = {"finish": 0, "gone": 1, "requeue": 1, "start": 2, "submit": 3}
"""Events that come first among events with the same time, in this order. The policy's decisions follow."""
_DECIDED = 4
_OUTSIDE_OF_CYCLES = ("evict", "mark", "unmark")
"""Actions that follow immediately from node changes or from the end of a toleration."""


@dataclass(frozen=True)
class Step:
    """A possible decision after it took effect. `pods` contains the affected pods."""

    row: Row
    life: Life
    pods: frozenset[int]

    @property
    def where(self) -> str:
        """The description of the decision in messages."""
        return at(self.row)


class Rule(ABC):
    """A rule that is checked after each decision."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    @abstractmethod
    def turn(self, step: Step) -> Iterator[Broken]:
        """Yields the violations after a decision took effect."""

    def change(self, now: int) -> None:  # noqa: B027 most rules store no state of the cluster
        """Handle a change of the cluster."""

    def close(self) -> Iterator[Broken]:
        """Yields the violations over the whole run."""
        yield from ()


class Level:
    """The allocated, pending and held resources of a queue, and the numbers of its jobs."""

    def __init__(self) -> None:
        self.amounts: dict[tuple[str, str], int] = {}
        self.running = self.pending = 0

    def add(self, life: Life, sign: int) -> None:
        """Add a job in its current state with sign 1, or remove the job with sign -1."""
        alive = life.state == "alive"
        self.running += sign * (alive and bool(life.holds))
        self.pending += sign * (alive and not life.holds)
        for kind, pods in (("allocated", set(life.holds)), ("pending", life.waiting), ("held", life.quota)):
            if alive and pods:
                for resource, amount in life.asked.amounts(pods).items():
                    key = kind, resource
                    self.amounts[key] = self.amounts.get(key, 0) + sign * amount

    def key(self, resources: list[str]) -> tuple[tuple[int, ...], ...]:
        """Returns, for each resource, the values of a row of the timeline, in the order of its columns.

        They are the allocated, pending and held quantities, and the numbers of running and pending jobs.
        """
        of = self.amounts.get
        return tuple(
            (*(of((kind, each), 0) for kind in ("allocated", "pending", "held")), self.running, self.pending)
            for each in resources
        )


class History:
    """Follows the decisions of a run.

    Attributes:
        lives: maps names to jobs, for every job that is in both the trace and the run.
        levels: maps pairs of time and queue to the resources of the queue after each change.
        broken: the violations that `steps` has found.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.lives = {name: Life(job, facts.losses, facts.on_nodes) for name, job in facts.jobs.items()}
        self.levels: dict[tuple[int, str], tuple[tuple[int, ...], ...]] = {}
        self.broken: list[Broken] = []
        self._queues: dict[str, Level] = {}
        self._told: dict[str, tuple[tuple[int, ...], ...]] = {}
        self._touched: dict[str, None] = {}
        self._dues: list[tuple[int, str]] = []
        self._delivered: tuple[int, str, int] | None = None  # last event now: rank, place and cycle
        self._line: dict[str, None] = {}  # without nodes: admitted jobs that wait for their start
        self._put_off: dict[str, int] = {}  # such jobs with admission checks -> their earliest start

    def steps(self) -> Iterator[Step]:
        """Yields each decision after it took effect, until the first impossible decision."""
        before: Row = {"seq": -1, "time": self.facts.start, "cycle": 0, "action": "submit"}
        for row in self.facts.decisions:
            found = list(self._order(row, before))
            if row["time"] > before["time"]:
                self._end_instant(before["time"])
                self._delivered = None
                found += self._overdue(row["time"], row)
            found += self._delivery(row)
            if found:
                self.broken += found
                return
            life = self.lives[row["job_id"]]
            self._level(life).add(life, -1)
            try:
                pods = life.take(row, row["time"], self.facts.removed.get(row["time"], ()))
                self._take_line(row, life)
            except IllegalError as error:
                self.broken.append(Broken(f"order.{row['action']}", at(row), str(error)))
                return
            self._level(life).add(life, +1)
            self._touched[life.asked.tenant] = None
            for due in life.dues():
                heappush(self._dues, (due, row["job_id"]))
            yield Step(row, life, pods)
            before = row
        self._end_instant(before["time"])
        stopped = self.facts.run.stopped is not None
        self.broken += self._overdue(self.facts.end + (not stopped), before)

    def _order(self, row: Row, before: Row) -> Iterator[Broken]:
        if row["seq"] != before["seq"] + 1:
            yield Broken("time.order", at(row), f"follows decision {before['seq']}")
        if row["time"] < before["time"] or row["cycle"] < before["cycle"]:
            yield Broken("time.order", at(row), "is earlier than the decision before it")
        if row["action"] not in ACTIONS:
            yield Broken("invented.action", at(row), "there is no such action")
        asked = self.facts.jobs.get(row["job_id"])
        if asked is None or asked.number != row["job"]:
            yield Broken("invented.job", at(row), f"row {row['job']} of the jobs is not job {row['job_id']}")
        if (row["by"] is not None) != (row["action"] == "preempt"):
            yield Broken(
                "invented.by", at(row), "a preemption must have a preemptor, and no other action may have one"
            )
        elif row["by"] is not None:
            by = self.lives.get(row["by"])
            if by is None or by.state != "alive" or row["by"] == row["job_id"]:
                yield Broken(
                    "invented.by", at(row), f"its preemptor {row['by']} is not alive, or is the job itself"
                )
        there = self.facts.nodes_at(row["time"]) if row["action"] == "bind" else self.facts.ever.nodes
        if row["node"] is not None and row["node"] not in there:
            yield Broken("invented.node", at(row), f"there is no node {row['node']}")

    def _delivery(self, row: Row) -> Iterator[Broken]:
        """Yields violations of the order at one time: completions by name, departures, starts, arrivals."""
        action, last = row["action"], self._delivered
        rank = _DELIVERED.get(action)
        if rank is None:
            early = last is not None and last[0] < _DECIDED and row["cycle"] <= last[2]
            if early and action not in _OUTSIDE_OF_CYCLES:
                yield Broken("time.cycle", at(row), "was decided before a cycle began")
            self._delivered = (_DECIDED, "", row["cycle"])
            return
        if last is not None and last[0] == _DECIDED and action not in ("finish", "submit"):
            return  # this may be an effect of a decision
        if last is not None and row["cycle"] > last[2]:
            last = None  # after a cycle without decisions, the order of immediate events begins again
        place = (row["pod"] or row["job_id"]) if action == "finish" else f"{row['job']:09}"
        if last is not None and rank < last[0] < _DECIDED:
            yield Broken(
                "time.order", at(row), "completions must come first, then departures, starts and arrivals"
            )
        elif last is not None and rank == last[0] and action in ("finish", "submit") and place <= last[1]:
            yield Broken(
                "time.order",
                at(row),
                "completions must be in the order of names, and arrivals in the order of the trace",
            )
        self._delivered = (rank, place, row["cycle"])

    def _take_line(self, row: Row, life: Life) -> None:
        """Check that admitted jobs start in the order of their admission if there are no nodes.

        Jobs with admission checks start when their checks are ready, or later.
        """
        name = row["job_id"]
        if life.in_line:
            checks = json.loads(row["detail"] or "{}").get("checks", {}) if row["action"] == "admit" else {}
            if checks:
                self._put_off[name] = row["time"] + max(checks.values())
            elif name not in self._put_off:
                self._line[name] = None
        elif name in self._put_off:
            ready = self._put_off.pop(name)
            if row["action"] == "start" and row["time"] < ready:
                raise IllegalError(f"its admission checks are not ready before {ready} microseconds")
        elif name in self._line:
            first = next(iter(self._line))
            if row["action"] == "start" and first != name:
                raise IllegalError(f"{first} was admitted earlier, but has not started")
            del self._line[name]

    def _overdue(self, now: int, row: Row) -> Iterator[Broken]:
        while self._dues and self._dues[0][0] < now:
            due, name = heappop(self._dues)
            if due in self.lives[name].dues():
                what = f"at {due} microseconds, the run or grace period of job {name} had to end, but did not"
                yield Broken("time.due", at(row), what)

    def _level(self, life: Life) -> Level:
        return self._queues.setdefault(life.asked.tenant, Level())

    def _end_instant(self, time: int) -> None:
        resources = self.facts.run.resources
        nothing = Level().key(resources)
        for queue in self._touched:
            level = self._queues[queue].key(resources)
            if level != self._told.get(queue, nothing):
                self._told[queue] = self.levels[time, queue] = level
        self._touched.clear()


def at(row: Row) -> str:
    """Returns the description of a decision in messages."""
    pod = row["pod"] or row["job_id"]
    return f"decision {row['seq']}, {row['action']} {pod} at {row['time']} microseconds"
