"""The smallest changes: each lets the job start when it is made, and nothing smaller of its kind does.

`CHANGED=0:200 python -m pytest -m slow tests/simulation/test_changes.py` makes them in the dumps of these
seeds, by default 60.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest
from dumps.loop import Loop
from dumps.worlds import DumpWorld, dump_world

from harness.base.units import format_amount, parse_quantity, round_up
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.studies.simulation.answer import STARTS, Answer, Change
from harness.studies.simulation.asking import Question
from harness.studies.simulation.differences import elastic_patch

PLUGINS = ("kueue-classic", "fairsharing", "elasticquota")
SOME = [pytest.param(each, marks=pytest.mark.nightly if each == "fairsharing" else ()) for each in PLUGINS]
LIBRARY = load(block=["metrics"])
LOOP = Loop(LIBRARY)
FIRST, END = (int(seed) for seed in os.environ.get("CHANGED", "0:60").split(":"))

GANG = "scheduling.x-k8s.io/pod-group"
ORDERS = {
    "withinClusterQueue": ("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
    "reclaimWithinCohort": ("Never", "LowerPriority", "Any"),
    "borrowWithinCohort": ("Never", "LowerPriority"),
}
"""Field of `preemption` -> its values, the mildest first."""

Manifest = dict[str, Any]


class Trial:
    """One Workload or Pod of a dump, taken out of it and submitted.

    Args:
        world: the dump's.
        items: its manifests.
        job: the Workload or the Pod.
    """

    def __init__(self, world: DumpWorld, items: Sequence[Manifest], job: Manifest) -> None:
        self._world = world
        self._items = [each for each in items if each is not job]
        self.job = {**job, "status": {}}

    @property
    def _cluster(self) -> Cluster:
        return cluster_from(self._items, f"world {self._world.seed}")

    def answer(
        self, *, job: Manifest | None = None, patch: Sequence[Mapping[str, Any]] = (), changes: bool = False
    ) -> Answer:
        """What is answered of the job, or of a changed one, on the cluster or a patched one."""
        cluster = self._cluster.patched(patch) if patch else self._cluster
        world = self._world
        question = Question(LIBRARY, cluster, world.plugin, world.options, world.losses)
        return question.answered([job or self.job], changes=changes).answers[0]

    def helps(self, change: Change) -> bool:
        """Whether a change does what it says."""
        found = self._after(change)
        if change.after == "now":
            return found.verdict == STARTS
        return tuple(each.name for each in found.victims) == change.victims

    def helps_at_all(self, change: Change, before: Answer) -> bool:
        """Whether the job starts with a change, or preempts others and did not before.

        Only a priority or a field of a policy may be of use by preemption.
        """
        found = self._after(change)
        preempts = change.kind in ("priority", "policy") and bool(found.victims and not before.victims)
        return found.verdict == STARTS or preempts

    def _after(self, change: Change) -> Answer:
        return self.answer(job=None if change.patch else self._changed(change), patch=change.patch)

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
        elif change.kind == "priority":
            lower = change.job["priority"] - 1
            if lower > self.job["spec"].get("priority", 0) and "priorityClassName" not in change.job:
                yield change._replace(job={"priority": lower})
        elif change.kind == "policy":
            yield from self._milder(change)
        elif "elastic quota" in change.text:
            yield from self._less_elastic(change)
        elif change.kind == "quota":
            yield from self._less_quota(change)

    def _milder(self, change: Change) -> Iterator[Change]:
        """The values between the old one and that of a change, of a field of `preemption`."""
        (patch,) = change.patch
        for field, value in patch["spec"].get("preemption", {}).items():
            order = ORDERS[field]
            (before,) = re.findall(r"instead of (\w+)", change.text)
            new = value["policy"] if isinstance(value, Mapping) else value
            for each in order[order.index(before) + 1 : order.index(new)]:
                milder = {"policy": each} if isinstance(value, Mapping) else each
                yield change._replace(patch=({**patch, "spec": {"preemption": {field: milder}}},))

    def _less_elastic(self, change: Change) -> Iterator[Change]:
        """Less by one unit, and by halves."""
        ((amount, of, field, name),) = re.findall(
            r"(\S+) (\S+) more (m\w+) of elastic quota (.*)", change.text
        )
        most = round_up(of, parse_quantity(amount))
        for less in sorted({most - 1, most // 2, most // 4} - {0}):
            patch = elastic_patch(self._cluster, name, field, of, less)
            if patch is not None:
                yield change._replace(patch=patch)

    def _less_quota(self, change: Change) -> Iterator[Change]:
        """Less by one unit, and by halves, of each resource that gets more."""
        name = change.patch[0]["metadata"]["name"]
        (queue,) = (
            each
            for each in self._items
            if each["kind"] == "ClusterQueue" and each["metadata"]["name"] == name
        )
        before = {
            (each["name"], one["name"], field): one[field]
            for group in queue["spec"]["resourceGroups"]
            for each in group["flavors"]
            for one in each["resources"]
            for field in one.keys() & {"nominalQuota", "borrowingLimit"}
        }
        patch = deepcopy(change.patch[0])
        for group in patch["spec"]["resourceGroups"]:
            for flavor in group["flavors"]:
                for one in flavor["resources"]:
                    (field,) = one.keys() - {"name"}
                    name, now = one["name"], one[field]
                    was = round_up(name, parse_quantity(before[flavor["name"], name, field]))
                    most = round_up(name, parse_quantity(now)) - was
                    for less in sorted({most - 1, most // 2, most // 4}):
                        one[field] = format_amount(name, was + less)
                        yield change._replace(patch=(deepcopy(patch),))
                    one[field] = now


def trials(plugin: str, seeds: range) -> Iterator[Trial]:
    """Some Workloads that wait, one of each dump."""
    for seed in seeds:
        world = dump_world(seed, plugin)
        _, objects = LOOP.restarted(world)
        items = [*world.manifests, *objects]
        waiting = [each for each in items if each["kind"] == "Workload" and "admission" not in each["status"]]
        if plugin == "elasticquota":
            waiting = [each for each in items if each["kind"] == "Pod" and stands_alone(each)]
        if waiting:
            yield Trial(world, items, waiting[seed % len(waiting)])


def stands_alone(pod: Manifest) -> bool:
    """Whether a Pod waits, and is of no gang."""
    return "nodeName" not in pod["spec"] and GANG not in pod["metadata"].get("labels", {})


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
                if trial.helps_at_all(less, answer)
            ]
    return found


@pytest.mark.early
@pytest.mark.parametrize("plugin", SOME)
def test_a_change_lets_the_job_start_and_nothing_smaller_does(plugin: str) -> None:
    """Made in the manifests, as a patch or in the job."""
    kinds: Counter[str] = Counter()
    wrong = wrong_of(plugin, range(3, 7), kinds)
    assert not wrong, "\n".join(wrong)
    assert kinds


@pytest.mark.slow
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("first", range(FIRST, END, 10))
def test_every_change_lets_the_job_start_and_nothing_smaller_does(plugin: str, first: int) -> None:
    """The same in many dumps."""
    wrong = wrong_of(plugin, range(first, min(END, first + 10)), Counter())
    assert not wrong, "\n".join(wrong)
