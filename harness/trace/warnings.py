"""Warns about parts of a trace and a cluster that don't match, although they are not faults."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import polars as pl

from harness.base.json_text import mapping_of
from harness.cluster.coverage.pods import POD_TEMPLATE
from harness.cluster.coverage.verdicts import Finding
from harness.cluster.draft import Warnings, unmodelled
from harness.cluster.kinds.pod_groups import MIN_AVAILABLE_LABEL, group_name, membership_of
from harness.cluster.kinds.scheduling_groups import GroupReference, missing, read_group_reference
from harness.cluster.kinds.selectors import Taint, Toleration, read_toleration
from harness.cluster.model import Cluster
from harness.cluster.node_kinds import taint_text
from harness.cluster.yaml.fields import Fields
from harness.trace.job_rows import job_rows
from harness.trace.misnamed import sentences
from harness.trace.schema import DEFAULT_NAMESPACE, entries
from harness.trace.trace import Trace

_NO_SIZE = (
    f"there is no such PodGroup, and no label {MIN_AVAILABLE_LABEL} with a whole number above 0. A gang of "
    "the trace is placed as a whole, and other pods are placed one by one"
)
_TWO_SIZES = f"its pods differ in the label {MIN_AVAILABLE_LABEL}; harness uses the label of the first pod"
_IN_PART = (
    "may be placed in part, but a gang of the trace runs only when all of its pods are bound; until "
    "then, its bound pods hold nodes without progress"
)
_TOO_SMALL = (
    "has fewer pods in the trace and the manifests than must be placed together, so they wait forever, "
    "unless a plugin places pods one by one"
)

_WAIT_FOR_EVER = "they wait forever if kube-scheduler's own gang scheduling is on"


def unreached(trace: Trace, cluster: Cluster) -> Iterator[str]:
    """Yields sentences about settings that don't affect any pod or job.

    Examples are disruption budgets and pod groups without pods, and taints that no job tolerates.
    """
    yield from sentences(trace.frame.schema)
    yield from _budgets(trace, cluster)
    yield from _taints(trace, cluster)
    yield from _pod_groups(trace, cluster)
    yield from _scheduling_groups(trace, cluster)
    yield from _templates(trace)


def _templates(trace: Trace) -> Iterator[str]:
    if "pod_template" not in trace.frame.columns:
        return
    rows = trace.frame.select("job_id", "pod_template").drop_nulls("pod_template")
    counted = rows.group_by("pod_template", maintain_order=True).agg(pl.col("job_id").first(), pl.len())
    place = POD_TEMPLATE.of("v1")
    found: dict[str, tuple[int, str]] = {}
    for text, job, count in counted.iter_rows():
        template = json.loads(text)
        spec = template["spec"] if isinstance(template.get("spec"), Mapping) else template
        for what in dict.fromkeys(_said_of(finding) for finding in place.findings(spec)):
            before, first = found.get(what, (0, job))
            found[what] = (before + count, first)
    for what, (count, first) in found.items():
        rows_of = f"{count:,} rows, the first of job" if count > 1 else "job"
        yield f"pod_template: {what} ({rows_of} {first})"


def _said_of(finding: Finding) -> str:
    if finding.wanted:
        return f"harness ignores the field {finding.path}, because its value is not {finding.wanted}"
    return unmodelled(finding)


def _budgets(trace: Trace, cluster: Cluster) -> Iterator[str]:
    """Yields a sentence for each disruption budget that matches no pod of the trace or the manifests."""
    if not cluster.disruption_budgets:
        return
    pods = [*_pods_of(trace), *((pod.namespace, pod.labels) for pod in cluster.pods)]
    for budget in cluster.disruption_budgets:
        if budget.selector and not any(budget.matches(namespace, labels) for namespace, labels in pods):
            name = f"{budget.namespace}/{budget.name}"
            yield f"PodDisruptionBudget {name}: spec.selector matches no pod of the trace or the manifests"


def _taints(trace: Trace, cluster: Cluster) -> Iterator[str]:
    """Yields a sentence for each taint that neither a job of the trace nor its flavor tolerates."""
    of_nodes = Counter(taint for node in cluster.nodes.values() for taint in node.taints)
    of_flavors = [(flavor.name, taint) for flavor in cluster.flavors.values() for taint in flavor.taints]
    if not of_nodes and not of_flavors:
        return
    own = _tolerations_of(trace)
    given = [each for flavor in cluster.flavors.values() for each in flavor.tolerations]
    for taint, count in of_nodes.items():
        if _keeps_out(taint, [*own, *given]):
            of = f"{count:,} of {len(cluster.nodes):,} nodes" if len(cluster.nodes) > 1 else "the only node"
            yield f"taint {taint_text(taint)} of {of}: no job tolerates it, so no job runs there"
    for name, taint in of_flavors:
        if _keeps_out(taint, [*own, *cluster.flavors[name].tolerations]):
            yield (
                f"ResourceFlavor {name}: no job tolerates its taint {taint_text(taint)}, so no job uses this "
                "flavor"
            )


def _keeps_out(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return taint.effect != "PreferNoSchedule" and not any(each.tolerates(taint) for each in tolerations)


def _tolerations_of(trace: Trace) -> list[Toleration]:
    """Returns the distinct tolerations of the trace's pods.

    Invalid tolerations are reported when pods are created.
    """
    found: dict[Toleration, None] = {}
    for name in ("tolerations", "pod_template"):
        if name not in trace.frame.columns:
            continue
        for text in trace.frame[name].drop_nulls().unique(maintain_order=True):
            value = json.loads(text)
            fields = Fields({name: value} if name == "tolerations" else value, name, [])
            spec = fields.child("spec") if "spec" in fields else fields
            found.update(dict.fromkeys(map(read_toleration, spec.items("tolerations"))))
    return list(found)


def _pods_of(trace: Trace) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yields the namespace and the labels of the trace's pods. Each combination is yielded once."""
    frame = trace.frame
    names = [name for name in ("namespace", "labels", "pod_template") if name in frame.columns]
    if not {"labels", "pod_template"} & set(names):
        yield from ((namespace, {}) for namespace in job_rows(frame)["namespace"].unique().sort())
        return
    for row in frame.select(pl.col(names)).unique(maintain_order=True).iter_rows(named=True):
        labels = {key: value or "" for key, value in entries(row["labels"])} if row.get("labels") else {}
        if row.get("pod_template"):
            labels = {**_labels_of(json.loads(row["pod_template"])), **labels}
        yield row.get("namespace") or DEFAULT_NAMESPACE, labels


def _labels_of(template: Mapping[str, Any]) -> dict[str, str]:
    labels = mapping_of(mapping_of(template, "metadata"), "labels")
    return {key: value for key, value in labels.items() if isinstance(value, str)}


def _pod_groups(trace: Trace, cluster: Cluster) -> Iterator[str]:
    """Yields sentences about unusual pod groups, which matter only to policies that place groups."""
    said = Warnings()
    sizes: Counter[tuple[str, str]] = Counter()
    least: dict[tuple[str, str], int] = {}
    of_gangs: set[tuple[str, str]] = set()
    for namespace, labels, pods, gang in (*_of_manifests(cluster), *_of_trace(trace)):
        member = membership_of(namespace, labels, cluster.pod_groups)
        key = (namespace, group_name(labels))
        sizes[key] += pods
        if member is None:
            said.add("pod group", "/".join(key), _NO_SIZE)
            continue
        if least.setdefault(key, member.least) != member.least:
            said.add("pod group", "/".join(key), _TWO_SIZES)
        if gang:
            of_gangs.add(key)
    for key in cluster.pod_groups:
        if key not in sizes:
            said.add("PodGroup", "/".join(key), "no pod of the trace or the manifests names this group")
    for key, count in least.items():
        if sizes[key] < count:
            said.add("pod group", "/".join(key), _TOO_SMALL)
        elif sizes[key] > count and key in of_gangs:
            said.add("pod group", "/".join(key), _IN_PART)
    yield from said.sentences()


def _scheduling_groups(trace: Trace, cluster: Cluster) -> Iterator[str]:
    """Yields sentences about unusual groups of kube-scheduler, which matter only if its gangs are enabled."""
    said = Warnings()
    sizes = Counter((pod.namespace, pod.group) for pod in cluster.pods if pod.group is not None)
    for job, namespace, group, pods in _references(trace):
        sizes[namespace, group] += pods
        if group.key(namespace) not in cluster.scheduling_groups:
            said.add("job", job, f"pod_template names {missing(group, namespace)}")
    named = {group.key(namespace) for namespace, group in sizes}
    for key in cluster.scheduling_groups:
        if key not in named:
            namespace, workload, name = key
            what = "no pod of the trace or the manifests names this group"
            _add(said, GroupReference(name, workload).text(namespace), what)
    for (namespace, group), count in sizes.items():
        found = cluster.scheduling_groups.get(group.key(namespace))
        if found is not None and found.min_count is not None and count < found.min_count:
            what = (
                f"has {count:,} pods in the trace and the manifests, but its minCount is {found.min_count:,}"
            )
            _add(said, group.text(namespace), f"{what}: {_WAIT_FOR_EVER}")
    yield from said.sentences()


def _add(said: Warnings, group: str, what: str) -> None:
    kind, _, name = group.partition(" ")
    said.add(kind, name, what)


def _references(trace: Trace) -> Iterator[tuple[str, str, GroupReference, int]]:
    frame = trace.frame
    if "pod_template" not in frame.columns:
        return
    found: dict[str, GroupReference | None] = {}
    names = [name for name in ("job_id", "namespace", "pods", "pod_template") if name in frame.columns]
    for row in frame.select(names).drop_nulls("pod_template").iter_rows(named=True):
        text = row["pod_template"]
        if text not in found:
            fields = Fields(json.loads(text), "pod_template", [])
            found[text] = read_group_reference(fields.child("spec") if "spec" in fields else fields)
        group = found[text]
        if group is not None:
            yield row["job_id"], row.get("namespace") or DEFAULT_NAMESPACE, group, row.get("pods") or 1


_InGroup: TypeAlias = tuple[str, Mapping[str, str], int, bool]
"""Pods that name a group: their namespace, labels and number, and whether they belong to a gang."""


def _of_manifests(cluster: Cluster) -> Iterator[_InGroup]:
    for pod in cluster.pods:
        if group_name(pod.labels):
            yield pod.namespace, pod.labels, 1, False


def _of_trace(trace: Trace) -> Iterator[_InGroup]:
    frame = trace.frame
    if "labels" not in frame.columns:
        return
    names = [name for name in ("job_id", "namespace", "labels", "pods", "gang") if name in frame.columns]
    found = []
    for row in frame.select(names).iter_rows(named=True):
        labels = {key: value or "" for key, value in entries(row["labels"])}
        if group_name(labels):
            found.append((row, labels, row.get("pods") or 1))
    pods_of: Counter[str] = Counter()
    for row, _, pods in found:
        pods_of[row["job_id"]] += pods
    for row, labels, pods in found:
        gang = row.get("gang")
        several = pods_of[row["job_id"]] > 1
        yield row.get("namespace") or DEFAULT_NAMESPACE, labels, pods, several if gang is None else gang
