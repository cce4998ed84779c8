"""Searches for the smallest single changes that let a job start. Every reported change was tried."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import gcd
from operator import attrgetter

from harness.base.text import counted
from harness.base.units import format_amount
from harness.cluster.kinds.elastic import QUOTA_NAME_LABEL, ElasticQuota, QuotaLeaves
from harness.cluster.kinds.pods import Pod
from harness.cluster.model import Cluster, ClusterQueue, Cohort
from harness.policy import PodSet
from harness.studies.simulation.answer import VICTIMS, Answer, Change
from harness.studies.simulation.differences import (
    elastic_patch,
    for_flavor,
    more,
    queue_patch,
    quota_patch,
    with_count,
    with_elastic,
    with_pod_sets,
    with_priority,
    with_queue,
    with_quotas,
)
from harness.studies.simulation.moment import Difference, Dump
from harness.studies.simulation.policy_fields import ANYBODY, Below, field_changes
from harness.studies.simulation.trials import RANK_STARTS, Outcome, Plays, Trials

NOW = "now"


def with_changes(plays: Plays, answer: Answer) -> Answer:
    """Returns the answer about a waiting job, with the smallest change of each kind that lets it start.

    The function does not try to make admission checks ready.
    """
    if not plays.moment.reserved.keys().isdisjoint(answer.ids):
        return replace(answer, changes=[])
    trials = Trials(plays, answer)
    found: list[Change] = []
    tried: dict[str, int] = {}
    for kind, changes in _KINDS:
        before = trials.count
        found += changes(trials)
        tried[kind] = tried.get(kind, 0) + trials.count - before
    return replace(answer, changes=found, tried={kind: count for kind, count in tried.items() if count})


# --- of the job -------------------------------------------------------------------------------------------


def _fewer_pods(trials: Trials) -> Iterator[Change]:
    """Yields the largest number of pods in each pod set with which the job starts."""
    workload = trials.workload
    for pod_set in () if workload is None else workload.pod_sets:

        def fewer(by: int, of: PodSet = pod_set) -> Difference:
            def change(each: PodSet) -> PodSet:
                return with_count(each, each.count - by) if each.name == of.name else each

            return partial(with_pod_sets, names=trials.answer.ids, change=change)

        by = trials.least(pod_set.count - 1, fewer)
        if by is not None:
            count = pod_set.count - by
            of = f" of pod set {pod_set.name}" if workload is not None and len(workload.pod_sets) > 1 else ""
            text = f"{counted(count, 'pod')}{of} instead of {pod_set.count:,}"
            job = {"podSets": [{"name": pod_set.name, "count": count}]}
            yield Change("pods", text, NOW, job=job)


def _other_flavor(trials: Trials) -> Iterator[Change]:
    """Yields changes with which pods select or tolerate another flavor, if the job starts on that flavor."""
    cluster, names = trials.moment.cluster, trials.answer.ids
    workload, queue = trials.workload, trials.queue
    if workload is None or queue is None:
        return
    flavors = dict.fromkeys(each.flavor for group in queue.resource_groups for each in group.flavors)
    known = [cluster.flavors[each] for each in flavors if each in cluster.flavors]
    labels = frozenset(label for each in known for label in each.node_labels)
    for flavor in known:
        changed = [for_flavor(each, flavor, labels) for each in workload.pod_sets]
        pairs = list(zip(workload.pod_sets, changed, strict=True))
        if all(_asks(before) == _asks(after) for before, after in pairs):
            continue
        change = partial(for_flavor, flavor=flavor, among=labels)
        if trials.starts(partial(with_pod_sets, names=names, change=change)):
            podsets = [
                {
                    "name": each.name,
                    "nodeSelector": dict(each.node_selector),
                    "tolerations": json.loads(each.tolerations) if each.tolerations else [],
                }
                for each in changed
            ]
            text = f"flavor {flavor.name}: the job's pods would have to select {_labels(flavor.node_labels)}"
            if flavor.taints:
                text += f" and tolerate {', '.join(taint.key for taint in flavor.taints)}"
            yield Change("flavor", text, NOW, job={"podSets": podsets})


def _asks(pod_set: PodSet) -> tuple[object, ...]:
    return dict(pod_set.node_selector), pod_set.tolerations


def _labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items())) or "its nodes"


def _priorities(trials: Trials) -> Iterator[Change]:
    """Yields the lowest priority with which the job starts or preempts other jobs."""
    cluster, answer = trials.moment.cluster, trials.answer
    above = _above(cluster, answer.priority, of_kueue=trials.workload is not None)

    def outcome(value: int, name: str) -> Outcome:
        return trials.outcome(partial(with_priority, names=answer.ids, value=value, class_name=name))

    best = outcome(*above[-1]) if above else None
    if best is None or best.rank >= trials.rank:
        return
    for value, name in above:
        found = best if (value, name) == above[-1] else outcome(value, name)
        if found.rank < trials.rank:
            whose = f" (class {name})" if name else ""
            text = f"priority {value:,}{whose} instead of {answer.priority:,}"
            job = {"priority": value, **({"priorityClassName": name} if name else {})}
            yield Change("priority", text, _after(found), found.victims, job=job)
            return


def _above(cluster: Cluster, priority: int, *, of_kueue: bool) -> list[tuple[int, str]]:
    """Returns higher priorities, in ascending order: those of classes, and those just above other jobs."""
    classes = {**cluster.priority_classes, **(cluster.workload_priority_classes if of_kueue else {})}
    named = sorted((each.value, each.name) for each in classes.values() if each.value > priority)
    if named:
        return named
    known: list[int | None] = [each.priority for each in cluster.workloads]
    known += [each.priority for each in cluster.pods]
    others = {value for value in known if value is not None and value >= priority}
    return [(value + 1, "") for value in sorted(others)]


# --- of quotas --------------------------------------------------------------------------------------------


def _more_quota(trials: Trials) -> Iterator[Change]:
    """Yields the additional nominal quota or borrowing limit that the job needs, for each flavor."""
    queue, workload = trials.queue, trials.workload
    if queue is None or workload is None:
        return
    total = _total(workload.pod_sets, len(trials.answer.ids))
    for group in queue.resource_groups:
        for quotas in group.flavors:
            asked = {name: total[name] for name in group.covered_resources if total.get(name)}
            yield from _more_of(trials, queue, quotas.flavor, asked, "nominal")
            if queue.cohort:
                limits = {name: quota.borrowing_limit for name, quota in quotas.resources.items()}
                limited = {name: amount for name, amount in asked.items() if limits.get(name) is not None}
                yield from _more_of(trials, queue, quotas.flavor, limited, "borrowing_limit")


def _more_of(
    trials: Trials, queue: ClusterQueue, flavor: str, asked: Mapping[str, int], field: str
) -> Iterator[Change]:
    """Yields the change to one field of a flavor's quotas if the change lets the job start."""
    needed = _least_amounts(trials, queue, flavor, asked, field)
    if needed:
        changed = with_quotas(queue, flavor, more(needed, field))
        amounts = ", ".join(f"{format_amount(*item)} {item[0]}" for item in needed.items())
        name = "nominalQuota" if field == "nominal" else "borrowingLimit"
        text = f"{amounts} more {name} of flavor {flavor} in ClusterQueue {queue.name}"
        yield Change("quota", text, NOW, patch=(quota_patch(queue, changed),))


def _least_amounts(
    trials: Trials, queue: ClusterQueue, flavor: str, asked: Mapping[str, int], field: str
) -> dict[str, int]:
    """Returns the additional quota of each resource in a flavor; empty if the largest one doesn't help.

    The largest one is the request. If it doesn't help, it is the request and what exceeds the quotas now. No
    single quantity in the result can be made smaller.
    """
    steps = {name: _step(trials, name) for name in asked}

    def given(amounts: Mapping[str, int]) -> Difference:
        return partial(with_queue, queue=with_quotas(queue, flavor, more(amounts, field)))

    def all_of(amounts: Mapping[str, int]) -> dict[str, int]:
        most = {name: -(-amount // steps[name]) * steps[name] for name, amount in amounts.items()}
        return most if most and trials.starts(given(most)) else {}

    over = {name: _over(trials.moment.cluster, queue, flavor, name) for name in asked}
    needed = all_of(asked)
    if not needed and any(over.values()):
        needed = all_of({name: amount + over[name] for name, amount in asked.items()})
    for name, amount in list(needed.items()):
        without = {**needed, name: 0}
        if trials.starts(given(without)):
            del needed[name]
            continue

        def by(steps_of: int, name: str = name) -> Difference:
            return given({**needed, name: steps_of * steps[name]})

        least = trials.least(amount // steps[name], by, sure=True)
        assert least is not None  # The largest quantities were tried before.
        needed[name] = least * steps[name]
    return needed


def _over(cluster: Cluster, queue: ClusterQueue, flavor: str, resource: str) -> int:
    """Returns by how much Workloads exceed the quotas of a flavor, in the queue or in all queues together."""

    def nominal(of: Iterable[ClusterQueue | Cohort]) -> int:
        quotas = (each for owner in of for group in owner.resource_groups for each in group.quotas())
        return sum(quota.nominal for *cell, quota in quotas if cell == [flavor, resource])

    held: Counter[str] = Counter()
    for workload in cluster.workloads:
        if workload.holds_quota and workload.admission is not None:
            for each in workload.admission.assignments:
                if each.flavors.get(resource) == flavor:
                    held[workload.admission.cluster_queue] += each.usage.get(resource, 0)
    total = nominal([*cluster.cluster_queues.values(), *cluster.cohorts.values()])
    return max(0, held[queue.name] - nominal([queue]), held.total() - total)


def _step(trials: Trials, resource: str) -> int:
    """Returns the greatest common divisor of all requests and quotas of a resource."""
    known = trials.plays.steps
    if resource not in known:
        known[resource] = _divisor(trials.moment.cluster, resource)
    return known[resource]


def _divisor(cluster: Cluster, resource: str) -> int:
    found = 0
    for workload in cluster.workloads:
        for pod_set in workload.pod_sets:
            found = gcd(found, pod_set.requests.get(resource, 0))
    for _, name, quota in (each for group in cluster.resource_groups for each in group.quotas()):
        if name == resource:
            found = gcd(found, quota.nominal, quota.borrowing_limit or 0, quota.lending_limit or 0)
    return found or 1


def _more_elastic(trials: Trials) -> Iterator[Change]:
    """Yields how much more `min` or `max` of a single resource the job's elastic quota needs."""
    cluster = trials.moment.cluster
    pods = [each for each in cluster.pods if each.key in trials.answer.ids]
    quota = _elastic_quota_of(cluster, pods[0], trials.answer.queue) if pods else None
    while quota is not None:
        for field in ("max", "min"):
            for resource in getattr(quota, field) or ():
                total = sum(each.spec.requests.get(resource, 0) for each in pods)

                def by(
                    amount: int, name: str = quota.name, field: str = field, of: str = resource
                ) -> Difference:
                    return partial(with_elastic, name=name, field=field, resource=of, amount=amount)

                least = trials.least(total, by)
                if least is None:
                    continue
                patch = elastic_patch(cluster, quota.name, field, resource, least)
                if patch is not None:
                    amount = f"{format_amount(resource, least)} {resource}"
                    text = f"{amount} more {field} of elastic quota {quota.name}"
                    yield Change("quota", text, NOW, patch=patch)
        quota = cluster.elastic_quotas.get(quota.parent) if quota.parent else None


def _elastic_quota_of(cluster: Cluster, pod: Pod, queue: str) -> ElasticQuota | None:
    """Returns the elastic quota that a Pod counts against, or None if there is none."""
    named = pod.labels.get(QUOTA_NAME_LABEL, "")
    return cluster.elastic_quotas.get(QuotaLeaves(cluster).of(pod.namespace, queue, named) or "")


# --- of policies ------------------------------------------------------------------------------------------


def _policy_fields(trials: Trials) -> Iterator[Change]:
    """Yields the first value of each policy field of the queue with which the job starts or preempts."""
    queue = trials.queue
    known = () if queue is None else field_changes(queue, _below(trials))
    for _, of_field in groupby(known, attrgetter("field")):
        changes = list(of_field)
        boldest = trials.outcome(partial(with_queue, queue=changes[-1].queue))
        if boldest.rank >= trials.rank:
            continue
        for change in changes:
            last = change is changes[-1]
            found = boldest if last else trials.outcome(partial(with_queue, queue=change.queue))
            if found.rank < trials.rank:
                text = f"{change.field}: {change.value} instead of {change.before}"
                text += f" in ClusterQueue {change.queue.name}"
                patch = queue_patch(change.queue.name, change.spec)
                yield Change("policy", text, _after(found), found.victims, patch=(patch,))
                break


def _below(trials: Trials) -> Below:
    """Returns whether there are jobs that could be preempted. A submitted job is newer than all others."""
    moment, answer = trials.moment, trials.answer
    workload, queue = trials.workload, trials.queue
    if not isinstance(moment, Dump) or workload is None or queue is None:
        return ANYBODY
    bound = answer.priority + max(0, workload.boost) + (not moment.submitted)
    queues = {name for name, priority in trials.plays.lowest.items() if priority < bound}
    return Below(queue.name in queues, bool(queues - {queue.name}))


def _after(found: Outcome) -> str:
    return NOW if found.rank == RANK_STARTS else VICTIMS


_KINDS: Sequence[tuple[str, Callable[[Trials], Iterator[Change]]]] = (
    ("pods", _fewer_pods),
    ("flavor", _other_flavor),
    ("quota", _more_quota),
    ("quota", _more_elastic),
    ("policy", _policy_fields),
    ("priority", _priorities),
)


def _total(pod_sets: tuple[PodSet, ...], copies: int) -> dict[str, int]:
    total: dict[str, int] = {}
    for pod_set in pod_sets:
        for resource, amount in pod_set.requests.items():
            total[resource] = total.get(resource, 0) + amount * pod_set.count * copies
        total["pods"] = total.get("pods", 0) + pod_set.count * copies
    return total
