"""Reads Kueue's kinds in the versions v1alpha1, v1beta1 and v1beta2.

Readers reject objects that Kueue's webhooks and schemas reject (`Fields.refuse`). If Kueue accepts an object
but keeps it inactive, the reader adds a warning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from harness.cluster.draft import Draft, read_metadata
from harness.cluster.kinds.selectors import LabelSelector, read_selector, read_taints, read_toleration
from harness.cluster.model import (
    DELETION,
    NAMESPACE_NAME,
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    FlavorFungibility,
    FlavorQuotas,
    LocalQueue,
    Preemption,
    PriorityClass,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    frozen,
)
from harness.cluster.yaml.fields import Fields

_STOP_POLICIES = ("None", "Hold", "HoldAndDrain")
_BY_USAGE = "UsageBasedAdmissionFairSharing"
_NANO = 10**9
_DEEPEST = 40
"""The maximum number of ancestors of a cohort. It is limited because functions call themselves for the parent
of a cohort.
"""

_SEARCH = ("MayStopSearch", "TryNextFlavor")
_PREFERENCES = ("BorrowingOverPreemption", "PreemptionOverBorrowing")


def read_resource_flavor(fields: Fields, draft: Draft) -> None:
    """Read a ResourceFlavor, which describes the nodes of a flavor."""
    name = read_metadata(fields).name
    spec = fields.child("spec")
    flavor = ResourceFlavor(
        name,
        spec.strings("nodeLabels"),
        read_taints(spec, "nodeTaints"),
        tuple(read_toleration(item) for item in spec.items("tolerations")),
        spec.string("topologyName"),
    )
    draft.flavors.add(name, flavor, fields)


def read_cluster_queue(fields: Fields, draft: Draft) -> None:
    """Read a ClusterQueue with its quotas, its cohort and its policies."""
    name = read_metadata(fields).name
    spec = fields.child("spec")
    first_beta = fields.string("apiVersion").endswith("/v1beta1")
    cohort = _spelled(spec, "cohort", "cohortName", first=first_beta)
    selector = spec.child("namespaceSelector")
    checks = _checks(spec)
    queue = ClusterQueue(
        name,
        cohort,
        _resource_groups(spec, bool(cohort), "a cohort", lends_at_most_nominal=True),
        _weight(spec),
        spec.choice("queueingStrategy", ("StrictFIFO", "BestEffortFIFO"), "BestEffortFIFO"),
        read_selector(selector) if "namespaceSelector" in spec else None,
        _preemption(spec.child("preemption")),
        _fungibility(spec.child("flavorFungibility"), first_beta=first_beta),
        _stop_policy(fields),
        "admissionScope" in spec and _by_usage(spec.child("admissionScope")),
        checks,
        DELETION if _is_deleted(fields) else _inactive(fields.child("status")) if checks else "",
    )
    draft.cluster_queues.add(name, queue, fields)


def _inactive(status: Fields) -> str:
    """Returns what a queue's status says if admission checks keep the queue inactive, or ""."""
    for item in status.items("conditions"):
        reason, state = item.string("reason"), (item.string("type"), item.string("status"))
        if state == ("Active", "False") and ("Check" in reason or "MultiKueue" in reason):
            return item.string("message").rstrip(".") or reason
    return ""


def _stop_policy(fields: Fields) -> str:
    """Returns the stop policy of a queue. Kueue holds a queue whose deletion has begun."""
    policy = fields.child("spec").choice("stopPolicy", _STOP_POLICIES, "None")
    return "Hold" if policy == "None" and _is_deleted(fields) else policy


def _is_deleted(fields: Fields) -> bool:
    return "deletionTimestamp" in fields.child("metadata")


def read_cohort(fields: Fields, draft: Draft) -> None:
    """Read a Cohort with its parent and its own quotas."""
    name = read_metadata(fields).name
    spec = fields.child("spec")
    first_alpha = fields.string("apiVersion").endswith("/v1alpha1")
    parent = _spelled(spec, "parent", "parentName", first=first_alpha)
    groups = _resource_groups(spec, bool(parent), "a parent", lends_at_most_nominal=False)
    draft.cohorts.add(name, Cohort(name, parent, groups, _weight(spec)), fields)


def read_local_queue(fields: Fields, draft: Draft) -> None:
    """Read a LocalQueue, through which a namespace submits jobs to a ClusterQueue."""
    metadata = read_metadata(fields)
    spec = fields.child("spec")
    queue = LocalQueue(
        metadata.name,
        metadata.namespace,
        spec.string("clusterQueue", required=True),
        _stop_policy(fields),
        _weight(spec),
        _consumed(fields.child("status")),
        _is_deleted(fields),
    )
    draft.local_queues.add((queue.namespace, queue.name), queue, fields)


def read_workload_priority_class(fields: Fields, draft: Draft) -> None:
    """Read a WorkloadPriorityClass, which sets a priority that only Kueue uses."""
    name = read_metadata(fields).name
    draft.workload_priority_classes.add(
        name, PriorityClass(name, fields.integer("value", required=True)), fields
    )


def _spelled(spec: Fields, old: str, new: str, *, first: bool) -> str:
    """Read a field that was renamed between API versions.

    The name from the other version is a fault, because a cluster would drop the field.
    """
    right, wrong = (old, new) if first else (new, old)
    if wrong in spec:
        spec.fault(wrong, f"is called {right} in this apiVersion")
    return spec.string(right) or spec.string(wrong)


def _by_usage(scope: Fields) -> bool:
    """Returns True if an admission scope orders jobs by usage.

    Kueue accepts other values, but ignores them.
    """
    modes = (_BY_USAGE, "NoAdmissionFairSharing")
    return scope.choice("admissionMode", modes, modes[1], required=True) == _BY_USAGE


def _checks(spec: Fields) -> tuple[AdmissionCheck, ...]:
    """Read the admission checks of a ClusterQueue in either form. Kueue rejects a queue with both forms."""
    plain, strategy = "admissionChecks", "admissionChecksStrategy"
    found = [AdmissionCheck(name) for name in spec.texts(plain)]
    rules = spec.child(strategy).items("admissionChecks")
    if found and rules:
        spec.refuse(strategy, f"cannot be given together with {plain}")
    found += [AdmissionCheck(each.string("name", required=True), each.texts("onFlavors")) for each in rules]
    return tuple(found)


def _consumed(status: Fields) -> Mapping[str, int]:
    sharing = status.child("fairSharing")
    table = sharing.child("admissionFairSharingStatus").child("consumedResources")
    found = {resource: table.quantity(resource) for resource in table}
    return frozen({name: math.floor(used * _NANO) for name, used in found.items() if used is not None})


def _weight(spec: Fields) -> Fraction:
    """Returns a fair-sharing weight, rounded up to billionths as Kubernetes does."""
    sharing = spec.child("fairSharing")
    weight = sharing.quantity("weight")
    if weight is None:
        return Fraction(1)
    billionths = math.ceil(weight * _NANO)
    if billionths == 1:
        sharing.refuse("weight", "must be 0, or more than 1n")
    return Fraction(billionths, _NANO)


def _preemption(fields: Fields) -> Preemption:
    borrow = fields.child("borrowWithinCohort")
    preemption = Preemption(
        fields.choice("withinClusterQueue", ("Never", "LowerPriority", "LowerOrNewerEqualPriority"), "Never"),
        fields.choice("reclaimWithinCohort", ("Never", "LowerPriority", "Any"), "Never"),
        borrow.choice("policy", ("Never", "LowerPriority"), "Never"),
        borrow.integer("maxPriorityThreshold") if "maxPriorityThreshold" in borrow else None,
    )
    if preemption.borrow_within_cohort != "Never" and preemption.reclaim_within_cohort == "Never":
        borrow.refuse("policy", "requires that reclaimWithinCohort is not Never")
    return preemption


def _fungibility(fields: Fields, *, first_beta: bool) -> FlavorFungibility:
    """Read the flavor fungibility.

    v1beta1 also accepts the older names `Borrow` and `Preempt` for `MayStopSearch`.
    """
    can_borrow = fields.choice("whenCanBorrow", (*_SEARCH, "Borrow") if first_beta else _SEARCH, _SEARCH[0])
    can_preempt = fields.choice(
        "whenCanPreempt", (*_SEARCH, "Preempt") if first_beta else _SEARCH, _SEARCH[1]
    )
    fungibility = FlavorFungibility(
        _SEARCH[0] if can_borrow == "Borrow" else can_borrow,
        _SEARCH[0] if can_preempt == "Preempt" else can_preempt,
        fields.choice("preference", ("", *_PREFERENCES), ""),
    )
    searches = (fungibility.when_can_borrow, fungibility.when_can_preempt)
    if fungibility.preference and searches != ("TryNextFlavor", "TryNextFlavor"):
        fields.refuse("preference", "needs whenCanBorrow and whenCanPreempt to be TryNextFlavor")
    return fungibility


def _resource_groups(
    spec: Fields, shares: bool, shares_with: str, *, lends_at_most_nominal: bool
) -> tuple[ResourceGroup, ...]:
    """Read the resource groups of a queue or cohort. A resource or flavor can be in only one group."""
    groups = []
    resources: set[str] = set()
    flavors: set[str] = set()
    for item in spec.items("resourceGroups"):
        covered = item.texts("coveredResources")
        if not covered:
            item.refuse("coveredResources", "must name at least one resource")
        for number, resource in enumerate(covered):
            if resource in resources:
                item.refuse(f"coveredResources[{number}]", f"{resource} is covered twice")
            resources.add(resource)
        quotas = []
        for entry in item.items("flavors"):
            flavor = entry.string("name", required=True)
            if flavor in flavors:
                entry.refuse("name", f"flavor {flavor} is listed twice")
            flavors.add(flavor)
            found = _flavor_resources(entry, covered, shares, shares_with, lends_at_most_nominal)
            quotas.append(FlavorQuotas(flavor, found))
        if not quotas:
            item.refuse("flavors", "must name at least one flavor")
        groups.append(ResourceGroup(covered, tuple(quotas)))
    return tuple(groups)


def _flavor_resources(
    entry: Fields, covered: tuple[str, ...], shares: bool, shares_with: str, lends_at_most_nominal: bool
) -> Mapping[str, ResourceQuota]:
    """Read the quotas of a flavor, which must name exactly the covered resources in the same order."""
    found: dict[str, ResourceQuota] = {}
    names = []
    for item in entry.items("resources"):
        name = item.string("name", required=True)
        names.append(name)
        if "nominalQuota" not in item:
            item.fault("nominalQuota", "is missing")
        quota = ResourceQuota(
            item.quota("nominalQuota", name) or 0,
            item.quota("borrowingLimit", name),
            item.quota("lendingLimit", name),
        )
        if not shares:
            for limit in ("borrowingLimit", "lendingLimit"):
                if limit in item:
                    item.refuse(limit, f"must be left out unless {shares_with} is set")
        if lends_at_most_nominal and quota.lending_limit is not None and quota.lending_limit > quota.nominal:
            item.refuse("lendingLimit", "must not be more than nominalQuota")
        found[name] = quota
    if tuple(names) != covered:
        entry.refuse(
            "resources",
            f"must list the covered resources in their order: {', '.join(covered)}; not {', '.join(names)}",
        )
    return frozen(found)


def check_kueue(draft: Draft) -> None:
    """Check rules that concern several objects of Kueue, such as a ClusterQueue that names a flavor."""
    for key, local in draft.local_queues.items():
        name, what = local.cluster_queue, ""
        leads_to = draft.cluster_queues.get(name)
        if leads_to is None:
            what = f"there is no ClusterQueue {name}, so Kueue admits no workload of this queue"
        elif local.namespace not in draft.namespaces and _selects_labels(leads_to):
            what = (
                f"ClusterQueue {name} selects namespaces by labels, but no manifest describes this "
                "namespace; add what kubectl get namespaces -o yaml prints"
            )
        if what and name:
            draft.warnings.add("LocalQueue", "/".join(key), what)
    for queue in draft.cluster_queues.values():
        for group in queue.resource_groups:
            for quotas in group.flavors:
                if quotas.flavor not in draft.flavors:
                    draft.warnings.add(
                        "ClusterQueue",
                        queue.name,
                        f"there is no ResourceFlavor {quotas.flavor}, so Kueue keeps the queue inactive",
                    )
        if queue.inactive not in ("", DELETION):
            draft.warnings.add("ClusterQueue", queue.name, f"its status says: {queue.inactive}")
        if queue.by_usage and not any(found.admission for found in draft.kueue_configurations):
            draft.warnings.add(
                "ClusterQueue",
                queue.name,
                "spec.admissionScope has no effect without admissionFairSharing in Kueue's Configuration",
            )
    for name, kueue_class in draft.workload_priority_classes.items():
        kubernetes_class = draft.priority_classes.get(name)
        if kubernetes_class is not None and kubernetes_class.value != kueue_class.value:
            draft.warnings.add(
                "WorkloadPriorityClass",
                name,
                f"a PriorityClass of that name has the value {kubernetes_class.value}; "
                f"for jobs, the value {kueue_class.value} of this class applies",
            )
    _check_ancestors(draft)


def _selects_labels(queue: ClusterQueue) -> bool:
    """Returns True if a queue selects namespaces by labels, apart from the label with their name."""
    selector = queue.namespace_selector or LabelSelector()
    keys = {*selector.match_labels, *(each.key for each in selector.match_expressions)}
    return bool(keys - {NAMESPACE_NAME})


def _check_ancestors(draft: Draft) -> None:
    """Check that no cohort has too many ancestors, and cut cycles of cohorts.

    Kueue keeps ClusterQueues inactive if a cohort above them is its own ancestor (upstream's HasCycle). A
    warning names each cycle once, at its first cohort.
    """
    depth: dict[str, int] = {}
    cut: dict[str, str] = {}
    for first in draft.cohorts:
        path: list[str] = []
        name = first
        while name in draft.cohorts and name not in depth and name not in path and len(path) <= _DEEPEST:
            path.append(name)
            name = draft.cohorts[name].parent
        if name in path:
            cycle = " > ".join([*path[path.index(name) :], name])
            cut[name] = f"Cohort {name} is its own ancestor: {cycle}"
            what = f"the cohort is its own ancestor, so Kueue keeps all queues below it inactive: {cycle}"
            draft.warnings.add("Cohort", name, what)
            draft.cohorts[name] = replace(draft.cohorts[name], parent="")
        elif depth.get(name, 0) + len(path) > _DEEPEST:
            what = f"the cohort has more than {_DEEPEST} ancestors, but harness reads no more than that"
            draft.cohorts.fields(first).fault("spec", what)
            return
        depth.update((each, depth.get(name, 0) + at) for at, each in enumerate(reversed(path), 1))
    for queue in list(draft.cluster_queues.values()) if cut else ():
        name = queue.cohort
        while name in draft.cohorts and draft.cohorts[name].parent:
            name = draft.cohorts[name].parent
        if name in cut:
            draft.cluster_queues[queue.name] = replace(queue, inactive=cut[name])


def implied_cohorts(draft: Draft) -> dict[str, Cohort]:
    """Returns all cohorts.

    Cohorts with a manifest come first, followed by cohorts that only other objects name.
    """
    names = [queue.cohort for queue in draft.cluster_queues.values()]
    names += [cohort.parent for cohort in draft.cohorts.values()]
    return dict(draft.cohorts) | {
        name: Cohort(name) for name in dict.fromkeys(names) if name and name not in draft.cohorts
    }
