"""What is asked of an instant that is made once is what a replay from the changed dump decides.

`PREPARED=0:200 python -m pytest -m slow tests/simulation/test_prepared.py` asks of the dumps of these seeds
with every plugin, by default 60 of each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from dumps.loop import Loop
from dumps.worlds import DumpWorld, dump_world

from harness.base.copies import in_a_copy
from harness.base.options import resolve
from harness.cluster.load import cluster_from
from harness.engine.losses import parse_losses
from harness.plugins import load
from harness.runs.at_start import as_it_stands
from harness.studies.simulation.differences import (
    more,
    with_count,
    with_elastic,
    with_pod_sets,
    with_priority,
    with_queue,
    with_quotas,
    workload_of,
)
from harness.studies.simulation.instant import Instant, Scheduler
from harness.studies.simulation.moment import Asked, Difference, Dump
from harness.studies.simulation.policy_fields import field_changes

PLUGINS = ("kueue-classic", "fairsharing", "default-preemption", "elasticquota")
SOME = [pytest.param(each, marks=pytest.mark.nightly if each == "fairsharing" else ()) for each in PLUGINS]
LIBRARY = load(block=["metrics"])
LOOP = Loop(LIBRARY)
FIRST, END = (int(seed) for seed in os.environ.get("PREPARED", "0:60").split(":"))


def moment_of(world: DumpWorld) -> Dump | None:
    """A dump of a world with one of those that wait submitted instead; None where nobody waits."""
    _, objects = LOOP.restarted(world)
    items = [*world.manifests, *objects]
    waiting = [each for each in items if each["kind"] == "Workload" and "admission" not in each["status"]]
    waiting = waiting or [each for each in items if each["kind"] == "Pod" and "nodeName" not in each["spec"]]
    if not waiting:
        return None
    job = waiting[world.seed % len(waiting)]
    spec = LIBRARY.policy(world.plugin)
    scheduler = Scheduler(
        spec, resolve(spec.options, world.options, owner=spec.name), parse_losses(world.losses)
    )
    cluster = cluster_from([each for each in items if each is not job], f"world {world.seed}")
    return Dump(as_it_stands(cluster), scheduler).with_jobs([Asked({**job, "status": {}}, "the job")])


def differences(moment: Dump) -> Iterator[Difference | None]:
    """Nothing, and changes of every kind."""
    name, cluster = moment.submitted[0][0], moment.cluster
    yield None
    yield partial(with_priority, names=[name], value=1_000_000, class_name="")
    for quota in cluster.elastic_quotas.values():
        for resource in list(quota.max or ())[:1]:
            yield partial(with_elastic, name=quota.name, field="max", resource=resource, amount=64_000)
    workload = workload_of(cluster, name)
    if workload is None:
        return
    for count in range(1, workload.pod_sets[0].count):
        yield partial(with_pod_sets, names=[name], change=partial(with_count, count=count))
    queue = cluster.cluster_queue_of(workload.namespace, workload.queue)
    assert queue is not None
    for change in field_changes(queue):
        yield partial(with_queue, queue=change.queue)
    for group in queue.resource_groups:
        for each in group.flavors:
            raised = more(dict.fromkeys(each.resources, 64_000))
            yield partial(with_queue, queue=with_quotas(queue, each.flavor, raised))


def untried_after(difference: Difference | None, most: int | None) -> bool:
    """Whether a job is known to be untried, having `most` as the priority up to which it is."""
    if difference is None or most is None or difference.func not in (with_pod_sets, with_priority):
        return False
    return bool(difference.keywords.get("value", most) <= most)


def told(instant: Instant, names: tuple[str, ...]) -> tuple[bool, list[str], list[tuple[str, int, str]]]:
    """Whether jobs start, whom they preempt, and how all jobs stand."""
    lives = [(life.job.id, life.started, repr(life.bound)) for life in instant.lives.values()]
    return instant.starts(names), instant.victims(names), sorted(lives)


def differing(plugin: str, seeds: range) -> tuple[list[str], Counter[str]]:
    """Where both say something else, and how often an instant was made once, a job is untried, and so on."""
    wrong, counts = [], Counter[str]()
    for seed in seeds:
        moment = moment_of(dump_world(seed, plugin))
        if moment is None:
            continue
        counts["ready"] += moment.is_ready
        names = moment.submitted[0]
        tell = partial(told, names=names)
        most = moment.asked(partial(Instant.untried_up_to, names=names))
        behind = () if most is None else (partial(with_priority, names=names, value=most, class_name=""),)
        for number, difference in enumerate((*differences(moment), *behind)):
            mine, theirs = moment.asked(tell, difference), tell(moment.played(difference))
            if untried_after(difference, most):
                counts["untried"] += 1
                if theirs[0] or theirs[1]:
                    wrong.append(f"seed {seed} {plugin}, {number}: it was tried")
            if difference is not None and theirs[0] and moment.lacks_room(moment.submitted[0], difference):
                wrong.append(f"seed {seed} {plugin}, {number}: it starts, and there is no room for it")
            turns = None if difference is None else moment.turns(names, difference)
            if turns is not None:
                counts["turns"] += 1
                ((admitted, victims),) = turns
                if list(victims) != theirs[1] or (theirs[0] and not admitted):
                    wrong.append(f"seed {seed} {plugin}, {number}: {turns}, a replay {theirs[:2]}")
            if mine != theirs:
                wrong.append(f"seed {seed} {plugin}, {number}: {mine[:2]}, a replay {theirs[:2]}")
    return wrong, counts


@pytest.mark.early
@pytest.mark.parametrize("plugin", SOME)
def test_an_instant_that_is_made_once_goes_on_as_a_replay_does(plugin: str) -> None:
    """With each change: who starts, where, and who is preempted."""
    wrong, counts = differing(plugin, range(2))
    assert not wrong, "\n".join(wrong)
    assert counts["ready"] or plugin in PLUGINS[2:]
    assert counts["untried"] or plugin != PLUGINS[0]
    assert counts["turns"] or plugin in PLUGINS[2:]


@pytest.mark.slow
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("first", range(FIRST, END, 20))
def test_every_instant_that_is_made_once_goes_on_as_a_replay_does(plugin: str, first: int) -> None:
    """The same of many dumps."""
    wrong, _ = differing(plugin, range(first, min(END, first + 20)))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("plugin", PLUGINS[:2])
def test_turns_leave_the_policy_as_it_is(plugin: str) -> None:
    """They are played in place, without a copy, and all that Kueue knows of its queues is put back."""
    known = 0
    for moment in filter(None, (moment_of(dump_world(seed, plugin)) for seed in range(3))):
        names, changes = moment.submitted[0], [each for each in differences(moment) if each is not None]
        moment.turns(names, changes[0])  # what is yet to be requeued is requeued then
        before = state(moment)
        first = [moment.turns(names, each) for each in changes]
        assert state(moment) == before
        assert [moment.turns(names, each) for each in changes] == first
        known += len(first) - first.count(None)
    assert known


def state(moment: Dump) -> list[str]:
    """All that the scheduler's queues and workloads hold, object by object."""
    _, policy, _ = moment.prepared._made()
    scheduler: Any = policy.scheduler
    numbers: dict[int, int] = {}
    found: list[str] = [repr((scheduler.cycles, scheduler.heads, scheduler.idle, list(policy._workloads)))]
    ahead: list[Any] = [scheduler.pending, scheduler.cache.holders, scheduler.cache.tree.usage]

    def told(value: Any) -> str:
        if isinstance(value, dict):
            return told(list(value.items()))
        if isinstance(value, (list, tuple, set)):
            return f"[{', '.join(map(told, value))}]"
        if not type(value).__module__.startswith("harness_plugins.kueue.state"):
            return repr(value) if isinstance(value, (int, str, type(None))) else str(id(value))
        if id(value) not in numbers:
            numbers[id(value)] = len(numbers)
            ahead.append(value)
        return f"{type(value).__name__} {numbers[id(value)]}"

    for each in ahead:
        if type(each).__module__.startswith("harness_plugins.kueue.state") and not isinstance(each, tuple):
            names = getattr(type(each), "__slots__", vars(each) if hasattr(each, "__dict__") else ())
            slots = [name for name in names if name not in ("changed", "known")]
            found.append(told([getattr(each, name, None) for name in slots]))
        else:
            found.append(told(each))
    return found


def test_without_copies_it_is_made_anew_for_each_question() -> None:
    """Another thread might hold a lock in a copy; the answer is the same."""
    moment = next(each for each in (moment_of(dump_world(seed, PLUGINS[0])) for seed in range(9)) if each)
    tell = partial(told, names=moment.submitted[0])
    copied = [moment.asked(tell) for _ in range(2)]
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        assert in_a_copy(lambda: 1) is None
        assert [moment.asked(tell) for _ in range(2)] == copied
    finally:
        over.set()
        other.join()


ALONE = """
from harness.base.copies import in_a_copy
found = []
assert in_a_copy(lambda: found.append(1) or len(found)) == (1,)
assert not found
assert in_a_copy(lambda: found[7]) is None
"""


def test_a_copy_leaves_all_as_it_is() -> None:
    """A failure in the copy gives no answer; a process of its own has no thread that another test left."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
