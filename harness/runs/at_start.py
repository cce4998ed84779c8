"""Determines which work in the manifests takes part in a replay, and when this work arrives.

Work means Workloads and Pods that have not ended. The user can choose whether a replay begins with this work
or with an empty cluster. By default, the dates in the trace and the manifests decide.

If both have dates, an object that was created during the trace arrives at its creation time. It then waits
like any other job, and `harness.runs.estimates.unfinished_work` estimates its run time. Older objects exist
from the beginning of the replay, unless it begins with an empty cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.base import text
from harness.base.units import date_text
from harness.base.values import Value, fixed
from harness.cluster.dates import latest_of
from harness.cluster.kinds.pod_reading import unbound
from harness.cluster.kinds.pods import Pod, places_of_pods
from harness.cluster.kinds.workloads import Workload, read_time
from harness.cluster.model import Cluster, frozen
from harness.cluster.yaml.fields import Fields
from harness.policy import Arrival
from harness.runs.settings import DUMP, EMPTY

if TYPE_CHECKING:
    from harness.trace.trace import Trace

_BEFORE, _LATER, _AFTER, _KNOWN, _GOING = "before", "later", "after", "known", "going"


@fixed(slots=False)
class AtStart(Value):
    """The work in the manifests that takes part in a replay, at its beginning or later.

    Attributes:
        world: `empty` if the replay begins with an empty cluster, `dump` if it begins with the work in the
            manifests, or "" if the manifests contain no work.
        cluster: the cluster with the work that exists when the replay begins.
        later: the cluster with the work that arrives during the replay and then waits, or None.
        times: maps the `namespace/name` of each object in `later` to its arrival, in microseconds since 1970.
        begins: a sentence that says how the replay begins and why, and which work arrives later, or "" if
            there is no work.
        left_out: sentences about work that does not take part.
    """

    world: str
    cluster: Cluster
    later: Cluster | None = None
    times: Mapping[str, int] = field(default_factory=frozen)
    begins: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def takes_part(self) -> bool:
        """True if any work in the manifests takes part, whether at the beginning or later."""
        return self.later is not None or bool(self.cluster.workloads or self.cluster.pods)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that affect the result of a replay, apart from the cluster."""
        return {"at_start": self.world} if self.world else {}

    def arrivals(self, running: Callable[[Cluster, int], Sequence[Arrival]], origin: int) -> list[Arrival]:
        """Returns the jobs from the manifests that arrive during the replay, in order of arrival.

        `running` is the function that the policy registered to make jobs from manifests. It names each job
        `namespace/name`. `origin` is the trace's origin, in microseconds since 1970.
        """
        if self.later is None:
            return []
        found: list[Arrival] = []
        for job, *runs in running(self.later, 0):
            since = max(0, self.times.get(job.id, origin) - origin)
            found.append((replace(job, submit=since), *runs))
        return sorted(found, key=lambda arrival: arrival[0].submit)


def at_start(cluster: Cluster, trace: Trace, choice: str | None) -> AtStart:
    """Determine how the work in the manifests takes part in a replay of a trace.

    With the choice `empty`, the replay begins with an empty cluster, and with `dump`, it begins with the work
    in the manifests. The default is `empty` if the manifests contain a time later than the first submission
    in the trace, because the trace is then older than the manifests. Otherwise, the default is `dump`.
    """
    objects = _Objects(cluster)
    if not objects.several:
        return AtStart("", cluster)
    dated = trace.kind == "timestamp"
    first, last = _period(trace)
    history = dated and objects.latest is not None and objects.latest > first
    world = choice or (EMPTY if history else DUMP)
    jobs = set(trace.frame["job_id"].unique().to_list())

    def place(each: Workload | Pod) -> str:
        came = objects.came(each)
        if each.key in jobs or (isinstance(each, Pod) and each.workload in jobs):
            return _KNOWN
        if not dated or came is None or came <= first:
            return _BEFORE
        return _LATER if came <= last else _AFTER

    places = {id(each): place(each) for each in objects.several}
    apart = world == DUMP and set(places.values()) <= {_AFTER, _KNOWN}
    if apart:  # The dump was not made during the trace, so all of its work exists at the beginning.
        places = {key: _BEFORE if where == _AFTER else where for key, where in places.items()}
    as_of = None if apart or not dated else first
    moment = objects.latest if as_of is None else as_of
    for pod in cluster.pods:
        there = world == DUMP and places[id(pod)] == _BEFORE
        if places[id(pod)] != _KNOWN and _is_going(pod, moment if there else None):
            places[id(pod)] = _GOING
    start = [each for each in objects.several if places[id(each)] == _BEFORE and world == DUMP]
    later = [each for each in objects.several if places[id(each)] == _LATER]
    return AtStart(
        world,
        replace(
            objects.cluster_of([_as_of(each, as_of) for each in start]), as_of=None if not start else moment
        ),
        objects.cluster_of([_waiting(each) for each in later]) if later else None,
        frozen({each.key: objects.came(each) or 0 for each in later}),
        _begins(world, choice, objects, start, later, first if dated else None, history=history),
        tuple(_left_out(world, objects, places)),
    )


def as_it_stands(cluster: Cluster) -> Cluster:
    """Returns the cluster with all work that had not ended when the manifests were written.

    A simulation without a trace begins with this work. Workloads whose job has ended are still there, because
    the status of their ClusterQueues counts them.
    """
    objects = _Objects(cluster)
    pods = [each for each in cluster.pods if not _is_going(each, objects.latest)]
    working = [each for each in cluster.workloads if each.takes_part or each.job_ended]
    return replace(objects.cluster_of([*working, *pods]), as_of=objects.latest)


def _is_going(pod: Pod, moment: int | None) -> bool:
    """Returns True if a Pod is terminating and may be gone from its node by a given time.

    Such a Pod counts as ended.
    """
    stays = pod.node and moment is not None and pod.gone_at is not None and pod.gone_at > moment
    return pod.terminating and not stays


def _period(trace: Trace) -> tuple[int, int]:
    known = [
        name for name in ("submit_time", "recorded_start", "recorded_end") if name in trace.frame.columns
    ]
    times: list[Any] = [trace.frame[name].to_physical() for name in known]
    ends = [time.max() for time in times]
    return int(times[0].min()), max(int(end) for end in ends if end is not None)


class _Objects:
    """The unfinished work in a cluster.

    `several` contains the Workloads that are neither finished nor deactivated, followed by the Pods.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        working = [each for each in cluster.workloads if each.takes_part]
        self.several: list[Workload | Pod] = [*working, *cluster.pods]
        self._manifests = places_of_pods(cluster.manifests) if cluster.pods else {}

    @cached_property
    def latest(self) -> int | None:
        """The latest time in the manifests, in microseconds since 1970, or None if they contain no times."""
        return latest_of(self._cluster)

    def came(self, each: Workload | Pod) -> int | None:
        """Returns when an object was created, in microseconds since 1970.

        If a Pod has no creation time, the function returns its start time instead.
        """
        if isinstance(each, Workload):
            return each.created
        manifest = self._cluster.manifests[self._manifests[each.full_name]]
        created = read_time(Fields(manifest["metadata"], "", []), "creationTimestamp")
        return each.start if created is None else created

    def cluster_of(self, work: Sequence[Workload | Pod]) -> Cluster:
        if work == self.several:
            return self._cluster
        pods = [each for each in work if isinstance(each, Pod)]
        manifests = list(self._cluster.manifests)
        for pod in pods:
            number = self._manifests[pod.full_name]
            if not pod.node:
                manifests[number] = unbound(manifests[number])
            elif not pod.terminating and "deletionTimestamp" in manifests[number]["metadata"]:
                metadata = {**manifests[number]["metadata"]}
                del metadata["deletionTimestamp"]
                manifests[number] = {**manifests[number], "metadata": metadata}
        workloads = tuple(each for each in work if isinstance(each, Workload))
        return replace(self._cluster, workloads=workloads, pods=tuple(pods), manifests=tuple(manifests))


def _as_of(each: Workload | Pod, time: int | None) -> Workload | Pod:
    if time is None:
        return each
    if isinstance(each, Pod):
        if each.start is not None and each.start > time:
            return _waiting(each)
        told = each.told_at is not None and each.told_at > time
        return replace(each, terminating=False, preempted=False, gone_at=None, told_at=None) if told else each
    conditions = {name: found for name, found in each.conditions.items() if found.since <= time}
    unready = tuple(check for check in each.unready if check.since is None or check.since <= time)
    same = len(conditions) == len(each.conditions) and len(unready) == len(each.unready)
    if same and (each.began is None or each.began <= time):
        return each
    held = "QuotaReserved" in conditions
    late = "Evicted" in conditions or "Evicted" not in each.conditions
    return replace(
        each,
        conditions=frozen(conditions),
        admission=each.admission if held else None,
        time_outs=each.time_outs if late else 0,
        requeue_at=each.requeue_at if late else None,
        began=each.began if each.began is not None and each.began <= time else None,
        unready=unready,
    )


def _waiting(each: Workload | Pod) -> Workload | Pod:
    if isinstance(each, Pod):
        undone = replace(each, node="", nominated_node="", start=None, terminating=False)
        return replace(undone, gone_at=None, told_at=None)
    return replace(
        each,
        admission=None,
        conditions=frozen(),
        reclaimable=frozen(),
        ended=frozen(),
        time_outs=0,
        requeue_at=None,
        began=None,
        unready=(),
    )


def _begins(
    world: str,
    choice: str | None,
    objects: _Objects,
    start: Sequence[Workload | Pod],
    later: Sequence[Workload | Pod],
    first: int | None,
    *,
    history: bool,
) -> str:
    why = ""
    if choice is None and first is None:
        why = ", because the trace has no dates"
    elif choice is None and objects.latest is None:
        why = ", because the manifests have no dates"
    elif choice is None and first is not None and objects.latest is not None:
        order = "later than" if history else "not later than"
        dump, begin = date_text(objects.latest), date_text(first)
        why = f", because the manifests are from {dump}, {order} the first submission, {begin}"
    arrive = "arrives" if len(later) == 1 else "arrive"
    more = f"; {counted(later)} {arrive} later, at the time of creation" if later else ""
    return f"--at-start {world}{why}: {counted(start) or 'no work'} from the manifests{more}"


def _left_out(world: str, objects: _Objects, places: Mapping[int, str]) -> Iterator[str]:
    """Yields sentences about work that doesn't take part, with the number of objects and the reason."""
    reasons = {
        _KNOWN: "the trace has them as jobs",
        _GOING: "they are terminating, so they count as gone",
        _AFTER: "they were created after the last time in the trace",
    }
    if world == EMPTY:
        reasons[_BEFORE] = "the replay begins with an empty cluster (--at-start dump includes them)"
    for place, reason in reasons.items():
        found = [each for each in objects.several if places[id(each)] == place]
        if found:
            yield f"left out: {counted(found)} of the manifests: {reason}"


def counted(several: Sequence[Workload | Pod]) -> str:
    """Returns a text that counts Workloads and Pods, such as `2 Workloads and 1 Pod`."""
    count = Counter("Workload" if isinstance(each, Workload) else "Pod" for each in several)
    return " and ".join(text.counted(count[kind], kind) for kind in count)
