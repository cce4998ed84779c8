"""A simulation is the first instant of a replay: random dumps, asked about and replayed.

`SIMULATED=0:500 python -m pytest -m slow tests/simulation` asks about the dumps of these seeds with every
plugin, by default 125 of each.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pytest
from dumps.loop import Loop
from dumps.observed import Observed
from dumps.worlds import NOWHERE, DumpWorld, dump_world

from harness.base.options import resolve
from harness.cluster.load import cluster_from
from harness.engine import Engine
from harness.engine.events import ADMIT, BIND, EVICT, PREEMPT, START, Fact
from harness.engine.losses import parse_losses
from harness.plugins import load
from harness.runs.at_start import DUMP, at_start
from harness.runs.questions import running_jobs
from harness.studies.simulation.answer import STARTS, Answer, Simulation
from harness.studies.simulation.asking import Question
from harness.trace.job_columns import JobColumns
from harness.trace.jobs import Jobs

PLUGINS = ("kueue-classic", "fairsharing", "default-preemption", "elasticquota")
SOME = [pytest.param(each, marks=pytest.mark.nightly if each == "fairsharing" else ()) for each in PLUGINS]
LIBRARY = load(block=["metrics"])
LOOP = Loop(LIBRARY)
FIRST, END = (int(seed) for seed in os.environ.get("SIMULATED", "0:125").split(":"))

Manifest = dict[str, Any]


class Fate(NamedTuple):
    """What becomes of a job that waits in the first instant."""

    starts: bool
    flavors: Mapping[str, Mapping[str, str]]
    nodes: Mapping[str, int]
    victims: frozenset[str]


def documents(world: DumpWorld) -> list[Manifest]:
    """What an API server shows of a world at its restart, with the cluster."""
    _, objects = LOOP.restarted(world)
    return json.loads(json.dumps([*world.manifests, *objects]))  # type: ignore[no-any-return]


def several(world: DumpWorld) -> Iterator[list[Manifest]]:
    """The dump of a world, in which nobody starts at once, and two more in which somebody may.

    In the second one, the first Workload that holds quota is gone with its pods. In the third one, all that
    wait are more important.
    """
    items = documents(world)
    yield items
    held = [each for each in items if each["kind"] == "Workload" and "admission" in each["status"]]
    first = held[0]["metadata"]["name"] if held else ""
    named = (
        {**each.get("metadata", {}), **each.get("metadata", {}).get("annotations", {})} for each in items
    )
    names = ((told.get("name"), told.get("kueue.x-k8s.io/workload")) for told in named)
    yield [each for each, told in zip(items, names, strict=True) if first not in told]
    yield [
        {**each, "spec": {**each["spec"], "priority": 10**6}}
        if each["kind"] == "Workload" and "admission" not in each["status"]
        else each
        for each in items
    ]


def asked(world: DumpWorld, items: Sequence[Manifest], *jobs: Manifest) -> Simulation:
    """What is answered of a dump."""
    cluster = cluster_from(items, f"world {world.seed}")
    question = Question(LIBRARY, cluster, world.plugin, world.options, world.losses)
    return question.answered(jobs, changes=False)


def replayed(world: DumpWorld, items: Sequence[Manifest]) -> list[Fact]:
    """What is decided in the first instant of a replay that begins with a dump, as `--at-start dump` does."""
    dump = cluster_from(items, f"world {world.seed}")
    cluster = at_start(dump, world.rest, DUMP).cluster
    spec = LIBRARY.policy(world.plugin)
    jobs = Jobs(JobColumns(world.rest, cluster), running=lambda at: running_jobs(spec, cluster, at))
    observed = Observed()
    engine = Engine(jobs.chunks(), cluster, observed, losses=parse_losses(world.losses), until=0)
    options = resolve(spec.options, world.options, owner=spec.name)
    engine.run(spec.factory(cluster, engine.view, options), name=world.plugin)
    return [fact for fact in observed.facts if fact.job.queue != NOWHERE]


def fates(facts: Sequence[Fact], answers: Iterable[Answer], *, nodes: bool) -> dict[str, Fate]:
    """What a replay decided of the jobs that were asked about."""
    found = {}
    for answer in answers:
        own = [fact for fact in facts if fact.job.id == answer.name]
        evicted = [at for at, fact in enumerate(own) if fact.action in (PREEMPT, EVICT)]
        own = own[evicted[-1] + 1 :] if evicted else own
        admits = [fact for fact in own if fact.action == ADMIT]
        bound: Counter[str] = Counter()
        for fact in own:
            if fact.action == BIND:
                bound[str(fact.node)] += fact.pods
        if nodes:
            starts = bound.total() >= (admits[-1].pods if admits else answer.pods)
        else:
            starts = any(fact.action == START or (fact.action == ADMIT and fact.holding == 1) for fact in own)
        flavors = (admits[-1].flavors or {}) if admits else {}
        made = {fact.job.id for fact in facts if fact.by is not None and fact.by.id == answer.name}
        found[answer.name] = Fate(starts, flavors, bound, frozenset(made))
    return found


def told(answer: Answer) -> Fate:
    """The same of an answer."""
    victims = frozenset(each.name for each in answer.victims)
    return Fate(answer.verdict == STARTS, answer.flavors, answer.nodes, victims)


def differing(world: DumpWorld) -> str:
    """What differs for those that wait in a dump, and for one of them that is submitted instead."""
    return "\n".join(chain.from_iterable(_differing(world, items) for items in several(world)))


def _differing(world: DumpWorld, items: Sequence[Manifest]) -> list[str]:
    said = asked(world, items)
    nodes = any(each["kind"] == "Node" for each in world.manifests)
    facts = replayed(world, items)
    wrong = compared(said, fates(facts, said.answers, nodes=nodes))
    moved = {name for each in said.answers for name in (victim.name for victim in each.victims)}
    moved |= {each.name for answer in said.answers for each in answer.moves if each.what == "preempted"}
    really = {fact.job.id for fact in facts if fact.by is not None}
    if said.answers and really != moved:
        wrong.append(f"preempted: {sorted(moved)}, replay {sorted(really)}")
    waiting = [each for each in items if each["kind"] == "Workload" and "admission" not in each["status"]]
    if waiting:
        wrong += submitted_instead(world, items, waiting[world.seed % len(waiting)], nodes=nodes)
    return [f"seed {world.seed} {world.plugin}: {each}" for each in wrong]


def submitted_instead(
    world: DumpWorld, items: Sequence[Manifest], job: Manifest, *, nodes: bool
) -> list[str]:
    """What differs for a Workload that is not there and is submitted, against one that was created last."""
    others = [each for each in items if each is not job]
    said = asked(world, others, job)
    assert said.now is not None  # the youngest, by its UID where others were created in that second
    metadata = {**job["metadata"], "uid": "~submitted", "creationTimestamp": said.now}
    with_it = [*others, {**job, "metadata": metadata, "status": {}}]
    return compared(said, fates(replayed(world, with_it), said.answers, nodes=nodes))


def compared(said: Simulation, found: Mapping[str, Fate]) -> list[str]:
    """The jobs of which a simulation says something else than a replay did."""
    pairs = ((each.name, told(each), found[each.name]) for each in said.answers)
    return [f"{name}: {mine}, replay {theirs}" for name, mine, theirs in pairs if mine != theirs]


@pytest.mark.early
@pytest.mark.parametrize("plugin", SOME)
def test_a_simulation_says_what_the_first_instant_of_a_replay_does(plugin: str) -> None:
    """Who starts, in which flavors and on which nodes, and who is preempted for whom."""
    wrong = [differing(dump_world(seed, plugin)) for seed in range(2)]
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.slow
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("first", range(FIRST, END, 25))
def test_every_simulation_says_what_the_first_instant_of_a_replay_does(plugin: str, first: int) -> None:
    """The same of many dumps."""
    wrong = [differing(dump_world(seed, plugin)) for seed in range(first, min(END, first + 25))]
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.nightly
def test_the_dumps_are_of_every_kind() -> None:
    """Some of those that wait start, some preempt others, and some do neither."""
    kinds: Counter[str] = Counter()
    for plugin in PLUGINS[:2]:
        for seed in range(8):
            world = dump_world(seed, plugin)
            for answer in chain.from_iterable(asked(world, items).answers for items in several(world)):
                kinds[answer.verdict] += 1
                kinds["preempts"] += bool(answer.victims)
    assert kinds["starts"] > 3
    assert kinds["waits"] > 3
    assert kinds["preempts"] > 0
