"""Binds the pods of admitted jobs to nodes in the same way as kube-scheduler, if the cluster has nodes.

Kueue reserves quota and releases the pods. kube-scheduler then chooses nodes for them, within their flavors
and topology domains. In this model, kube-scheduler never preempts one pod for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, final

from harness.base.memo import Memo
from harness.models.cluster import HOSTNAME, Cluster, Pod, SchedulerConfiguration
from harness.models.kube.flavored import template_in
from harness.models.kube.kinds import Kinds
from harness.models.kube.pod import PodInfo, Template
from harness.models.kube.policy import PodTimers
from harness.models.kube.scheduler import Scheduler
from harness.models.kube.taint_evictions import TaintEvictions
from harness.policy import Bind, Decision, Edit, Job, Never, PodSet, Preempt, Standing, Wake
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

_NO_FLAVORS: Mapping[str, str] = {}
NONE_RUNS: Mapping[int, Pod] = MappingProxyType({})
"""The default for jobs that have no running pods."""

Domain = tuple[tuple[str, str], ...]
"""The node labels of a domain, or () for any node."""


MOVED = "TerminatedByKueue"
"""The reason code for a pod that leaves a healthy node because its workload lost its place there."""


class _Places(NamedTuple):
    """The places of a job's pods: the flavor of each resource by pod set, and the domain of each pod."""

    flavors: Mapping[str, Mapping[str, str]]
    domains: dict[int, Domain]


@final
class Binder:
    """Creates the pods of admitted jobs, and finds nodes for them by kube-scheduler's rules."""

    def __init__(self, cluster: Cluster) -> None:
        configuration = replace(cluster.scheduler or SchedulerConfiguration(), disable_preemption=True)
        self._scheduler = Scheduler(cluster, configuration)
        self._kinds = Kinds(self._scheduler, cluster)
        self._cluster = cluster
        self._taints = TaintEvictions(cluster, self._scheduler)
        self._places: dict[int, _Places] = {}
        self._pods: dict[int, dict[int, PodInfo]] = {}
        self._alone: set[int] = set()  # jobs without quota whose pod was created before
        self._ended: dict[int, set[int]] = {}
        self._now = 0
        self._put_off: dict[int, tuple[int, partial[None]]] = {}
        self._due: list[tuple[int, int]] = []
        self._woken = -1
        self._templates: Memo[tuple[PodSet, str, tuple[str, ...], Domain], Template] = Memo()  # by content

    def advance(self, now: int) -> None:
        """Advances to `now`, and creates the pods of jobs that start by then, in order of arrival."""
        self._now = now
        self._scheduler.advance(now)
        while self._due and self._due[0][0] <= now:
            due, index = heappop(self._due)
            found = self._put_off.get(index)
            if found is not None and found[0] == due:
                del self._put_off[index]
                found[1]()

    def timers(self, tell: Callable[[int], Iterator[Decision]]) -> PodTimers | None:
        """Returns the timers of pod events that occur at a certain time, or None if there are none."""
        return PodTimers(self._taints, self._scheduler, tell) if self._taints.may_be else None

    def start(
        self,
        job: Job,
        flavors: Mapping[str, Mapping[str, str]],
        counts: Mapping[str, int],
        placed: Sequence[Placed] = (),
        at: int = 0,
        running: Mapping[int, Pod] = NONE_RUNS,
    ) -> None:
        """Creates the pods of a job that holds quota.

        Args:
            job: the job.
            flavors: for each pod set, the flavor of each resource.
            counts: for each pod set that was admitted with only some of its pods, the number of these pods.
            placed: the places of pods in topologies. The pods of a pod set get the places in order. Pods of
                an incomplete slice may get no place. Such pods run on any node of the flavor.
            at: the time at which to create the pods. If it has passed, they are created immediately.
            running: the Pod objects of the pods that are already running, by their number in the job.
        """
        if at > self._now:
            self._put_off[job.index] = (at, partial(self._make, job, flavors, counts, placed))
            heappush(self._due, (at, job.index))
        else:
            self._make(job, flavors, counts, placed, running)

    def stand_alone(self, job: Job) -> None:
        """Creates the pod of a job that needs no quota. The pod runs or waits for a node.

        A pod that was evicted or lost its node is created again, unless another scheduler manages it.
        """
        kind = self._kinds.of(job, job.pod_sets[0])
        again = job.index in self._alone
        if again and not kind.ours:
            return
        self._alone.add(job.index)
        info = PodInfo(job.id, kind.template, job.priority, preempts=job.preempts, job=job)
        self._pods[job.index] = {0: info}
        if kind.node and not again:
            info.terminating, info.preempted = kind.going
            self._scheduler.add_running(info, kind.node, kind.start)
        else:
            self._scheduler.add(info)

    def _make(
        self,
        job: Job,
        flavors: Mapping[str, Mapping[str, str]],
        counts: Mapping[str, int],
        placed: Sequence[Placed],
        running: Mapping[int, Pod] = NONE_RUNS,
    ) -> None:
        places = {each.pod_set.name: each for each in placed} if placed else {}
        ended = self._ended.get(job.index, ())
        pods = self._pods[job.index] = {}
        domains_of: dict[int, Domain] = {}
        first = 0
        for pod_set in job.pod_sets:
            chosen = tuple(flavors.get(pod_set.name, _NO_FLAVORS).values())
            domains = list(_domains(places[pod_set.name])) if pod_set.name in places else None
            last = first + pod_set.count
            left: Sequence[int] = range(first, last)
            if ended:
                left = [pod for pod in left if pod not in ended]
            if counts:  # `counts` includes admitted pods that have finished
                fewer = pod_set.count - counts.get(pod_set.name, pod_set.count)
                left = left[: max(0, len(left) - fewer)]
            template: Template | None = None
            taken = self._domains_of(domains, left, running) if domains is not None else {}
            domains_of.update(taken)
            for pod in left:
                if domains is not None:
                    template = self._template(job, pod_set, chosen, taken[pod])
                elif template is None:  # all pods of the pod set share it
                    template = self._template(job, pod_set, chosen, ())
                info = PodInfo(
                    job.pod_name(pod), template, job.priority, preempts=job.preempts, job=job, pod=pod
                )
                pods[pod] = info
                there = running.get(pod)
                if there is None:
                    self._scheduler.add(info)
                else:
                    self._scheduler.add_running(info, there.node, there.start)
            first = last
        if placed:
            self._places[job.index] = _Places(flavors, domains_of)

    def _domains_of(
        self, domains: Sequence[Domain], pods: Sequence[int], running: Mapping[int, Pod]
    ) -> Mapping[int, Domain]:
        """Returns each pod's domain. Running pods keep theirs, and other pods get free domains in order."""
        left, found = list(domains), dict[int, Domain]()
        for pod in pods:
            if pod in running:
                labels = self._cluster.nodes[running[pod].node].labels
                own = next((each for each in left if labels.items() >= dict(each).items()), ())
                if own:
                    left.remove(own)
                found[pod] = own
        rest = iter(left)
        return found | {pod: next(rest, ()) for pod in pods if pod not in found}

    def bind_running(self) -> Iterable[Bind]:
        """Binds the pods that are already running, before any other decision."""
        return self._scheduler.bind_running()

    def stop(self, job: Job) -> None:
        """Terminates the bound pods of an evicted job, and deletes its pending pods."""
        self._put_off.pop(job.index, None)
        pods = self._pods.get(job.index, {})
        for pod, info in list(pods.items()):
            if info.node < 0:
                self._scheduler.delete(pods.pop(pod))
            elif not info.terminating:
                self._scheduler.terminate(info)

    def end(self, job: Job, pods: range) -> None:
        """Removes finished pods, which do not run again even if their job is admitted again."""
        present = self._pods[job.index]
        if len(pods) < job.pods:
            self._ended.setdefault(job.index, set()).update(pods)
        for pod in pods:
            if pod in present:
                self._delete(present.pop(pod))

    def lost(self, job: Job, pods: range) -> None:
        """Recreates the pods that were lost with their node, as the controller of their job does.

        Pods with a place in a topology wait until their node returns or they get another place.
        """
        for pod in pods:
            self._make_again(job, pod)

    def _make_again(self, job: Job, pod: int) -> None:
        present, places = self._pods[job.index], self._places.get(job.index)
        gone, template = present[pod], present[pod].template
        self._delete(gone)
        if places is not None and pod in places.domains:
            pod_set = job.pod_set_of(pod)
            chosen = tuple(places.flavors.get(pod_set.name, _NO_FLAVORS).values())
            template = self._template(job, pod_set, chosen, places.domains[pod])
        present[pod] = PodInfo(gone.name, template, job.priority, preempts=job.preempts, job=job, pod=pod)
        self._scheduler.add(present[pod])

    def move(self, job: Job, placed: Sequence[Placed], node: str) -> Iterator[Preempt]:
        """Moves a job's pods to other places if their place is on this node. Evicts those that run there."""
        if job.index in self._put_off:
            at, make = self._put_off[job.index]
            _, flavors, counts, _ = make.args
            self._put_off[job.index] = at, partial(self._make, job, flavors, counts, placed)
            return
        by_name = {each.pod_set.name: each for each in placed}
        present, domains = self._pods[job.index], self._places[job.index].domains
        lost = ((HOSTNAME, node),)
        first = 0
        for pod_set in job.pod_sets:
            pods = [pod for pod in range(first, first + pod_set.count) if pod in present and pod in domains]
            first += pod_set.count
            if all(domains[pod] != lost for pod in pods):
                continue
            free = list(_domains(by_name[pod_set.name]))
            for pod in sorted(pods, key=lambda pod: (domains[pod] == lost, present[pod].node < 0)):
                if domains[pod] in free and (domains[pod] != lost or present[pod].node >= 0):
                    free.remove(domains[pod])  # the pod keeps its place
                elif free:
                    domains[pod] = free.pop(0)
                    yield from self._leave_node(job, pod, node)

    def _leave_node(self, job: Job, pod: int, node: str) -> Iterator[Preempt]:
        """Evicts a pod whose place has changed. If the pod is not bound, creates it again instead."""
        info = self._pods[job.index][pod]
        if info.node < 0:
            self._make_again(job, pod)
        elif not info.terminating:
            yield self._scheduler.evict(info, None, MOVED, {"node": node})

    def nodes_of(self, job: Job, pods: Iterable[int]) -> list[str]:
        """Returns the nodes to which pods of a job are bound."""
        present, nodes = self._pods.get(job.index, {}), self._scheduler.cache.nodes
        return [nodes[info.node].name for pod in pods if (info := present.get(pod)) and info.node >= 0]

    def on(self, node: str, namespace: str) -> bool:
        """Returns True if a node has pods of this namespace. Pods that are terminating do not count.

        Only pods with places in a topology count.
        """
        there = self._scheduler.cache.by_name.get(node)
        return there is not None and any(
            not pod.terminating
            and pod.job is not None
            and pod.job.namespace == namespace
            and pod.job.index in self._places
            for pod in there.pods
        )

    def change(self, edit: Edit) -> None:
        """Adds, removes or changes a node."""
        if edit.after is None:
            self._scheduler.nodes.drop(edit.name)
        else:
            self._scheduler.nodes.put(edit.after)
        self._kinds.forget()

    def follow_taints(self, edit: Edit) -> Iterator[Preempt]:
        """Evicts pods from a changed node if they do not tolerate its NoExecute taints."""
        if edit.after is None:
            self._taints.drop(edit.name)
        else:
            yield from self._taints.put(edit.after, self._now)

    def tolerated_for_a_time(self) -> Iterator[Preempt]:
        """Evicts the pods whose tolerations end now, sorted by name."""
        return self._taints.ended(self._now)

    def leave(self, job: Job) -> None:
        """Deletes the pods of an evicted job."""
        self._places.pop(job.index, None)
        for info in self._pods.pop(job.index, {}).values():
            self._delete(info)

    def _delete(self, info: PodInfo) -> None:
        self._scheduler.delete(info)
        if self._taints.may_be:
            self._taints.forget(info)

    def forget(self, job: Job) -> None:
        """Removes a job that has ended."""
        self._places.pop(job.index, None)
        self._pods.pop(job.index, None)
        self._ended.pop(job.index, None)

    def never(self, job: Job) -> Never | None:
        """Returns the reason why the pod of a job without quota can never run, or None if it might run."""
        return self._kinds.never(job)

    def fits_none(self, job: Job, pod_set: PodSet, flavors: tuple[str, ...]) -> str:
        """Returns the reason why pods with these flavors do not fit on empty nodes, or "" if they fit."""
        return self._kinds.fits_none(self._template(job, pod_set, flavors, ()).shape)

    def run(self) -> Iterable[Decision]:
        """Binds the pods that fit, and requests a wake-up for the next time at which pods must be created."""
        found = self._heeding_taints() if self._taints.tainted else self._scheduler.run()
        return chain(found, self._wakes()) if self._due else found

    def _wakes(self) -> Iterator[Wake]:
        while self._due and self._put_off.get(self._due[0][1], (-1,))[0] != self._due[0][0]:
            heappop(self._due)
        if self._due and self._due[0][0] != self._woken:
            self._woken = self._due[0][0]
            yield Wake(self._woken)

    def _heeding_taints(self) -> Iterator[Decision]:
        """Binds the pods that fit, and limits how long they stay on nodes with NoExecute taints."""
        tainted = self._taints.tainted
        for decision in self._scheduler.run():
            yield decision
            if type(decision) is Bind and decision.node in tainted:
                present = self._pods[decision.job.index]
                yield from self._taints.bound(
                    [present[pod] for pod in decision.pods], decision.node, self._now
                )

    def standing(self, now: int) -> Standing | None:
        """Returns the state of the pods' scheduler, to detect a loop of idle wake-ups. See `Policy`."""
        return self._scheduler.standing(now)

    def skip(self, span: int, counts: Sequence[int]) -> None:
        """Advances the time by `span` without any other change of the state. See `Policy.skip`."""
        self._scheduler.skip(span, counts)

    def _template(self, job: Job, pod_set: PodSet, flavors: tuple[str, ...], domain: Domain) -> Template:
        key = (pod_set, job.namespace, flavors, domain)
        template = self._templates.get(key)
        if template is None:
            templates, labels = self._scheduler.templates, dict(domain)
            template = template_in(templates, self._cluster, job, pod_set, flavors, labels)
            self._templates[key] = template
        return template


def _domains(placed: Placed) -> Iterator[Domain]:
    levels = placed.flavor.tree.levels
    for values, pods in placed.domains:
        domain = tuple(zip(levels[-len(values) :], values, strict=True))
        for _ in range(pods):
            yield domain


@final
class BoundPods:
    """Implements `node_failures.Pods` with the pods that a binder manages."""

    def __init__(self, binder: Binder) -> None:
        self._binder = binder

    def on(self, node: str, namespace: str) -> bool:
        """Returns True if a node has pods of this namespace. Pods that are terminating do not count.

        Only pods with places in a topology count.
        """
        return self._binder.on(node, namespace)

    def leave(self, workload: Workload, pods: range) -> Iterable[str]:
        """Returns the nodes of these pods. If all pods leave, also returns the workload's assigned nodes."""
        nodes = self._binder.nodes_of(workload.job, pods)
        if len(pods) < workload.job.pods:
            return nodes
        return [*nodes, *(values[-1] for placed in workload.placed for values, _ in placed.domains)]

    def move(self, workload: Workload, placed: Sequence[Placed], node: str) -> Iterator[Decision]:
        """Moves the pods of a workload from a node to other places."""
        yield from self._binder.move(workload.job, placed, node)
