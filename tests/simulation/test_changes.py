"""The smallest changes: each lets the job start when it is made, and nothing smaller of its kind does.

`CHANGED=0:200 python -m pytest -m slow tests/simulation/test_changes.py` makes them in the dumps of these
seeds, by default 60.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest
from dumps.loop import Loop
from dumps.worlds import DumpWorld, dump_world

from harness.base.units import format_amount, parse_quantity, round_up
from harness.cluster.load import cluster_from
from harness.plugins import load
from harness.studies.simulation.answer import STARTS, Answer, Change
from harness.studies.simulation.asking import Question

PLUGINS = ("kueue-classic", "fairsharing")
LIBRARY = load(block=["metrics"])
LOOP = Loop(LIBRARY)
FIRST, END = (int(seed) for seed in os.environ.get("CHANGED", "0:60").split(":"))

Manifest = dict[str, Any]


class Trial:
    """One Workload of a dump, taken out of it and submitted.

    Args:
        world: the dump's.
        items: its manifests.
        job: the Workload.
    """

    def __init__(self, world: DumpWorld, items: Sequence[Manifest], job: Manifest) -> None:
        self._world = world
        self._items = [each for each in items if each is not job]
        self.job = {**job, "status": {}}

    def answer(
        self, *, job: Manifest | None = None, patch: Sequence[Mapping[str, Any]] = (), changes: bool = False
    ) -> Answer:
        """What is answered of the Workload, or of a changed one, on the cluster or a patched one."""
        cluster = cluster_from(self._items, f"world {self._world.seed}")
        if patch:
            cluster = cluster.patched(patch)
        world = self._world
        question = Question(LIBRARY, cluster, world.plugin, world.options, world.losses)
        return question.answered([job or self.job], changes=changes).answers[0]

    def helps(self, change: Change) -> bool:
        """Whether a change does what it says."""
        job = None if change.patch else self._changed(change)
        found = self.answer(job=job, patch=change.patch)
        if change.after == "now":
            return found.verdict == STARTS
        return tuple(each.name for each in found.victims) == change.victims

    def _changed(self, change: Change) -> Manifest:
        job = deepcopy(self.job)
        for each in change.job.get("podSets", ()):
            (own,) = (one for one in job["spec"]["podSets"] if one["name"] == each["name"])
            own["count"] = each.get("count", own["count"])
            own["minCount"] = min(own.get("minCount", own["count"]), own["count"])
            if "nodeSelector" in each:
                own["template"]["spec"]["nodeSelector"] = each["nodeSelector"]
                own["template"]["spec"]["tolerations"] = each["tolerations"]
        job["spec"]["priority"] = change.job.get("priority", job["spec"].get("priority", 0))
        return job

    def smaller(self, change: Change) -> Iterator[Change]:
        """All changes of a kind that are smaller."""
        if change.kind == "pods":
            (own,) = change.job["podSets"]
            (now,) = (each["count"] for each in self.job["spec"]["podSets"] if each["name"] == own["name"])
            for count in range(own["count"] + 1, now):
                yield change._replace(job={"podSets": [{**own, "count": count}]})
        elif change.kind == "quota":
            yield from self._less_quota(change)

    def _less_quota(self, change: Change) -> Iterator[Change]:
        """Less by one unit, and by halves, of each resource that gets more."""
        name = change.patch[0]["metadata"]["name"]
        (queue,) = (
            each
            for each in self._items
            if each["kind"] == "ClusterQueue" and each["metadata"]["name"] == name
        )
        before = {
            (each["name"], one["name"]): one["nominalQuota"]
            for group in queue["spec"]["resourceGroups"]
            for each in group["flavors"]
            for one in each["resources"]
        }
        patch = deepcopy(change.patch[0])
        for group in patch["spec"]["resourceGroups"]:
            for flavor in group["flavors"]:
                for one in flavor["resources"]:
                    name, now = one["name"], one["nominalQuota"]
                    was = round_up(name, parse_quantity(before[flavor["name"], name]))
                    most = round_up(name, parse_quantity(now)) - was
                    for less in sorted({most - 1, most // 2, most // 4}):
                        one["nominalQuota"] = format_amount(name, was + less)
                        yield change._replace(patch=(deepcopy(patch),))
                    one["nominalQuota"] = now


def trials(plugin: str, seeds: range) -> Iterator[Trial]:
    """Some Workloads that wait, one of each dump."""
    for seed in seeds:
        world = dump_world(seed, plugin)
        _, objects = LOOP.restarted(world)
        items = [*world.manifests, *objects]
        waiting = [each for each in items if each["kind"] == "Workload" and "admission" not in each["status"]]
        if waiting:
            yield Trial(world, items, waiting[seed % len(waiting)])


def wrong_of(plugin: str, seeds: range, kinds: Counter[str]) -> list[str]:
    """Changes that do not help, and smaller ones that do; the changes are counted by kind."""
    found = []
    for trial in trials(plugin, seeds):
        answer = trial.answer(changes=True)
        for change in answer.changes or ():
            kinds[change.kind] += 1
            if not trial.helps(change):
                found.append(f"{plugin} {answer.name}: {change.text} does not help")
            found += [
                f"{plugin} {answer.name}: {change.text}, and a smaller one helps: {less.patch or less.job}"
                for less in trial.smaller(change)
                if trial.helps(less)
            ]
    return found


@pytest.mark.early
@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_change_lets_the_job_start_and_nothing_smaller_does(plugin: str) -> None:
    """Made in the manifests, as a patch or in the job."""
    kinds: Counter[str] = Counter()
    wrong = wrong_of(plugin, range(12), kinds)
    assert not wrong, "\n".join(wrong)
    assert kinds


@pytest.mark.slow
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("first", range(FIRST, END, 10))
def test_every_change_lets_the_job_start_and_nothing_smaller_does(plugin: str, first: int) -> None:
    """The same in many dumps."""
    wrong = wrong_of(plugin, range(first, min(END, first + 10)), Counter())
    assert not wrong, "\n".join(wrong)
