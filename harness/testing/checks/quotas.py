"""Checks that usage exceeds the quotas of ClusterQueues and cohorts only during evictions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from math import isclose

from harness.base.units import HOUR, unit_of
from harness.cluster.model import ClusterQueue
from harness.testing.checks.facts import Broken, Facts
from harness.testing.checks.history import Rule, Step
from harness.testing.checks.life import Life
from harness.testing.checks.quota_forest import ENDLESS, Cell, Node, QuotaForest


class ClusterQuotas(Rule):
    """The rule about quotas.

    Attributes:
        holds, stays: the usage of queues, with and without terminating work.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.stays, self.holds = QuotaForest(facts.cluster), QuotaForest(facts.cluster)
        self._flavors: dict[str, dict[str, dict[str, str]]] = {}
        self._counted: dict[str, tuple[dict[Cell, int], dict[Cell, int]]] = {}
        self._changed: list[Broken] = []  # violations found when the cluster changed
        self._over: dict[tuple[str, str], int] = {}
        self._since = facts.start
        self._cells = self.holds.cells()
        self._excused: dict[tuple[str, Cell], int] = {}  # usage over quota because the quota fell

    def change(self, now: int) -> None:
        """Update the quotas, and keep the usage even if it now exceeds them."""
        self._changed += self._pass(now)
        for forest in (self.stays, self.holds):
            forest.become(self.facts.cluster)
        self._cells = self.holds.cells()
        for name in self.facts.cluster.cluster_queues:
            for cell in self._cells:
                self._excused[name, cell] = self.stays.over(Node("queue", name), cell)

    def turn(self, step: Step) -> Iterator[Broken]:
        """Yields violations for admissions that exceed a quota."""
        row, life = step.row, step.life
        name = life.asked.quota
        node = Node("queue", name or "")
        changed, self._changed = self._changed, []
        yield from changed
        if row["time"] > self._since:
            yield from self._pass(row["time"])
        if row["action"] == "admit":
            if name is None or name not in self.facts.cluster.cluster_queues:
                yield Broken("quotas.queue", step.where, "its queue has no quota")
                return
            self._flavors[life.asked.name] = json.loads(row["flavors"] or "{}")
            yield from self._chosen(step, self.facts.cluster.cluster_queues[name])
        self._count(life, node)
        if row["action"] == "admit":
            for cell, amount in self._counted[life.asked.name][0].items():
                if amount and not self._fits(node, cell):
                    used, more = self.stays.uses(node, cell), -self.stays.left(node, cell)
                    what = f"queue {name} uses {used} of {cell}, {more} too much, without evicted jobs"
                    yield Broken("quotas.admission", step.where, what)

    def _fits(self, node: Node | None, cell: Cell) -> bool:
        """Returns True if a queue, and every cohort in which its usage counts, is within its limits."""
        quotas = self.stays
        while node is not None:
            uses, has = quotas.uses(node, cell), quotas.has(node, cell)
            limit = quotas.quota(node, cell).borrowing_limit
            above = quotas.above(node)
            if uses > (has if above is None else ENDLESS if limit is None else has + limit):
                return False
            if uses <= quotas.keeps(node, cell):
                return True
            node = above
        return True

    def _chosen(self, step: Step, queue: ClusterQueue) -> Iterator[Broken]:
        """Check that each requested resource has a flavor, and each resource group one flavor."""
        for part in step.life.asked.parts:
            chosen = self._flavors[step.life.asked.name].get(part.name, {})
            wanted = {name for name, amount in part.requests.items() if amount}
            for group in queue.resource_groups:
                names = {chosen.get(each) for each in wanted & set(group.covered_resources)}
                if len(names) > 1 or not names <= {flavor.flavor for flavor in group.flavors}:
                    what = f"{part.name} gets {sorted(map(str, names))}, not one flavor of its resource group"
                    yield Broken("quotas.flavor", step.where, what)
                wanted -= set(group.covered_resources)
            if wanted:
                what = f"queue {queue.name} does not cover {sorted(wanted)}"
                yield Broken("quotas.flavor", step.where, what)

    def _count(self, life: Life, node: Node) -> None:
        held: dict[Cell, int] = {}
        for pod in life.quota:
            part = life.asked.part_of(pod)
            chosen = self._flavors.get(life.asked.name, {}).get(part.name, {})
            for resource, amount in part.requests.items():
                if resource in chosen:
                    cell = chosen[resource], resource
                    held[cell] = held.get(cell, 0) + amount
        now = ({} if life.leaving else held, held)
        before = self._counted.get(life.asked.name, ({}, {}))
        for quotas, old, new in zip((self.stays, self.holds), before, now, strict=True):
            for cell in old | new:
                used = quotas.used[node]
                used[cell] = used.get(cell, 0) + new.get(cell, 0) - old.get(cell, 0)
        self._counted[life.asked.name] = now

    def held_by(self, job: str) -> dict[Cell, int]:
        """Returns the quota that a job holds."""
        return self._counted.get(job, ({}, {}))[1]

    # --- what is over for a while -------------------------------------------------------------------------

    def _pass(self, now: int) -> Iterator[Broken]:
        """Add up usage that exceeds a quota, which is only allowed while jobs depart."""
        for name in self.facts.cluster.cluster_queues:
            node = Node("queue", name)
            for cell in self._cells:
                if not self.holds.used[node].get(cell):
                    continue
                over, explained = self.holds.over(node, cell), self._excused.get((name, cell), 0)
                if over and self.stays.over(node, cell) > explained:
                    beyond = f"uses {over} of {cell} beyond its quota until {now} microseconds"
                    what = f"{beyond}, and the jobs that are being evicted don't explain it"
                    yield Broken("quotas.over", f"queue {name} from {self._since} microseconds", what)
                key = name, cell[1]
                self._over[key] = self._over.get(key, 0) + over * (now - self._since)
        self._since = now

    def close(self) -> Iterator[Broken]:
        """Check the values of `quota.over` if each resource has a single flavor.

        With several flavors, the metric is a sum over flavors.
        """
        yield from self._changed
        yield from self._pass(self.facts.end)
        if len({resource for _, resource in self._cells}) < len(self._cells):
            return
        for row in self.facts.run.metrics.iter_rows(named=True):
            queue = row["scope"].removeprefix("quota=")
            known = queue in self.facts.cluster.cluster_queues and row["value"] is not None
            if known and row["metric"] == "quota.over":
                over = self._over.get((queue, row["resource"]), 0)
                hours = float(Fraction(over, HOUR * unit_of(row["resource"]).size))
                if not isclose(row["value"], hours, rel_tol=1e-9):
                    where = f"quota.over of {row['resource']}, queue {queue}"
                    what = f"is {row['value']}, but {hours} according to the decisions"
                    yield Broken("quotas.over", where, what)
