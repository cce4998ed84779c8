"""Both ends of the loop: a replay whose scheduler restarts, and the replay of a dump of that instant."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from dumps.observed import Event, Observed, first_name, flavors_text
from dumps.restart import Restarting
from dumps.worlds import ORIGIN, DumpWorld
from dumps.writer import TRUTH, Writer
from harness.base.options import resolve
from harness.base.units import HOUR, SECOND
from harness.cluster.load import cluster_from
from harness.engine import Engine
from harness.engine.losses import parse_losses
from harness.plugins import Plugins, load
from harness.plugins.registries import PolicySpec
from harness.policy import ENDLESS, Arrival
from harness.runs.at_start import DUMP, at_start
from harness.runs.questions import running_jobs
from harness.studies.forecasting.api_objects import Manifest
from harness.trace.job_columns import JobColumns
from harness.trace.jobs import Jobs

_LONGEST = 2 * HOUR
"""Replays are cut so long after the restart: some workloads come back for ever."""


@dataclass(frozen=True)
class Ends:
    """What happened after a restart.

    Attributes:
        events: in the replay whose scheduler restarts, times since then.
        objects: what an API server showed at that instant.
        again: what happened in the replay that begins with these.
    """

    events: Sequence[Event]
    objects: Sequence[Manifest]
    again: Sequence[Event]

    @cached_property
    def missing(self) -> list[Event]:
        """What did not happen again, in order."""
        return sorted((Counter(self.events) - Counter(self.again)).elements())

    @cached_property
    def extra(self) -> list[Event]:
        """What only happened again, in order."""
        return sorted((Counter(self.again) - Counter(self.events)).elements())

    def told(self, most: int = 12) -> str:
        """The first things that differ."""
        lines = [(each, "only the restarted replay") for each in self.missing]
        lines += [(each, "only the dump's replay") for each in self.extra]
        return "\n".join(
            f"{event.time / SECOND:g} s {event.action} {event.job} {event.where}: {whose}"
            for event, whose in sorted(lines)[:most]
        )


class Loop:
    """Replays worlds.

    Args:
        plugins: what was loaded.
    """

    def __init__(self, plugins: Plugins | None = None) -> None:
        self._plugins = plugins or load(block=["metrics"])

    def ends(self, world: DumpWorld) -> Ends:
        """Both ends of a world's loop."""
        events, objects = self.restarted(world)
        return Ends(events, objects, self.from_dump(world, objects))

    def restarted(self, world: DumpWorld) -> tuple[list[Event], list[Manifest]]:
        """The replay in which the scheduler restarts: what happened then, and what its API server showed."""
        spec, options = self._chosen(world)
        jobs = Jobs(JobColumns(world.trace, world.cluster))
        observed = Observed()
        engine = Engine(
            jobs.chunks(),
            world.cluster,
            observed,
            losses=parse_losses(world.losses),
            until=world.at + _LONGEST,
        )
        shown: list[Manifest] = []
        since = 0

        def told(policy: Any) -> None:
            nonlocal since
            since = len(observed.facts)
            nodes = bool(world.cluster.nodes)
            lives = engine._lifecycle.lives
            writer = Writer(observed, lives, ORIGIN, world.at, on_nodes=nodes)
            shown.extend(writer.objects(policy))

        policy = Restarting(
            partial(spec.factory, world.cluster, engine.view, options),
            engine._lifecycle,
            world.at,
            observed,
            told,
        )
        engine.run(policy, name=world.plugin)
        assert policy.restarted, "the replay was over before its scheduler restarted"
        found = observed.events(since)
        return [each._replace(time=each.time - world.at) for each in found], shown

    def from_dump(self, world: DumpWorld, objects: Sequence[Manifest]) -> list[Event]:
        """The replay that begins with a dump: what happened, without what only says what was there."""
        spec, options = self._chosen(world)
        items = json.loads(json.dumps([*world.manifests, *objects]))
        dump = cluster_from(items, f"world {world.seed}")
        trace = world.rest
        beginning = at_start(dump, trace, DUMP)
        cluster = beginning.cluster
        truths = {
            f"{each['metadata']['namespace']}/{each['metadata']['name']}": json.loads(
                each["metadata"]["annotations"][TRUTH]
            )
            for each in objects
            if TRUTH in each["metadata"].get("annotations", {})
        }
        jobs = Jobs(
            JobColumns(trace, cluster),
            running=lambda at: [_true(each, truths) for each in running_jobs(spec, cluster, at)],
        )
        observed = Observed()
        engine = Engine(jobs.chunks(), cluster, observed, losses=parse_losses(world.losses), until=_LONGEST)
        engine.run(spec.factory(cluster, engine.view, options), name=world.plugin)
        events = list(observed.events(0))
        for each in _there(objects, world.at, nodes=bool(cluster.nodes)):
            if each in events:
                events.remove(each)
        return events

    def _chosen(self, world: DumpWorld) -> tuple[PolicySpec, Mapping[str, Any]]:
        spec = self._plugins.policy(world.plugin)
        return spec, resolve(spec.options, world.options, owner=spec.name)


def _true(arrival: Arrival, truths: Mapping[str, Mapping[str, int]]) -> Arrival:
    """A job of a dump with its true run time, and the true start-up of its pods."""
    job, left, interval, *more = arrival
    if left < ENDLESS:  # it is terminating, and its manifest says when it is gone
        return arrival
    done = more[1] if len(more) > 1 else 0
    truth = truths[job.id]
    work = truth.get("work", ENDLESS)
    if "startup" not in truth:
        return job, work, interval, None, done
    later = truth["startup"]
    return job, work, interval, (later,) if done else (truth["left"], later), done


def _there(objects: Sequence[Manifest], at: int, *, nodes: bool) -> list[Event]:
    """What the replay of a dump tells first of what is there: it did not happen then."""
    found = []
    for each in objects:
        metadata, status = each["metadata"], each["status"]
        name = first_name(f"{metadata['namespace']}/{metadata['name']}")
        if each["kind"] == "Workload":
            states = {item["type"]: item for item in status["conditions"]}
            if "admission" in status:
                given = status["admission"]["podSetAssignments"]
                text = flavors_text({item["name"]: item["flavors"] for item in given})
                found.append(Event(0, "admit", name, text))
                if states.get("Evicted", {}).get("status") == "True":
                    words = ("evict",) if nodes else ("evict", "start")
                    found += [Event(0, word, name, "") for word in words]
        elif each["kind"] == "Pod" and "nodeName" in each["spec"]:
            if owners := metadata.get("ownerReferences"):
                name = f"{metadata['namespace']}/{owners[0]['name']}"
            if nodes:
                found.append(Event(0, "bind", name, each["spec"]["nodeName"]))
            elif Event(0, "start", name, "") not in found:
                found.append(Event(0, "start", name, ""))
            if "deletionTimestamp" in metadata and not owners:
                gone = datetime.fromisoformat(metadata["deletionTimestamp"]).timestamp()
                found.append(Event(int(gone) * SECOND - ORIGIN - at, "finish", name, ""))
    return found
