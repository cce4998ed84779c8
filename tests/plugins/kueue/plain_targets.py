"""Answers cases of `kueue/targets` by the plain restatement."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from plain_quotas import Holder, Incoming, Search, Snapshot, amount, nodes_of

Manifest = Mapping[str, Any]


def answer(case: Mapping[str, Any]) -> list[dict[str, str]]:
    """Whom a case's incoming workload preempts, in order, with the reasons."""
    config, given = case.get("config") or {}, case["given"]
    gates = config.get("featureGates") or {}
    in_order = gates.get("PrioritySortingWithinCohort", True)
    nodes = nodes_of(case["objects"])
    holders = []
    for each in case["objects"]:
        if each["kind"] == "Workload":
            holder = _workload(each, in_order=in_order)
            status = each["status"]
            holder.queue = nodes["ClusterQueue", status["admission"]["clusterQueue"]]
            conditions = {one["type"]: one for one in status["conditions"] if one["status"] == "True"}
            holder.evicted = "Evicted" in conditions
            holder.reserved = _seconds(conditions["QuotaReserved"]["lastTransitionTime"])
            for pods in status["admission"]["podSetAssignments"]:
                for resource, flavor in (pods.get("flavors") or {}).items():
                    cell = flavor, resource
                    held = amount(resource, (pods.get("resourceUsage") or {}).get(resource, 0))
                    holder.usage[cell] = holder.usage.get(cell, 0) + held
                    holder.uses.add(cell)
            holders.append(holder)
    requests = {
        (flavor, resource): value
        for flavor, resources in given["requests"].items()
        for resource, value in resources.items()
    }
    need = frozenset(
        (flavor["name"], resource)
        for pods in given["assignment"]["podSets"]
        for resource, flavor in (pods.get("flavors") or {}).items()
        if flavor["mode"] == "Preempt"
    )
    queue = nodes["ClusterQueue", given["clusterQueue"]]
    incoming = Incoming(_workload(given["workload"], in_order=in_order), queue, requests, need)
    sharing = config.get("fairSharing")
    search = Search(
        None if sharing is None else tuple(sharing["preemptionStrategies"]),
        gates.get("FairSharingPreemptWithinNominal", True),
    )
    targets = search.targets(Snapshot(holders), incoming)
    return [{"workload": holder.name, "reason": reason} for holder, reason in targets]


def _workload(manifest: Manifest, *, in_order: bool) -> Holder:
    """A workload with its place in its queue; only a preemption while borrowing may move it."""
    meta, spec = manifest["metadata"], manifest.get("spec") or {}
    timestamp = _seconds(meta.get("creationTimestamp"))
    for each in (manifest.get("status") or {}).get("conditions") or ():
        if each["status"] != "True":
            continue
        moved = _seconds(each["lastTransitionTime"])
        if each["type"] == "Evicted" and each.get("reason") in ("PodsReadyTimeout", "AdmissionCheck"):
            timestamp = moved
            break
        if (
            each["type"] == "Preempted"
            and each.get("reason") == "InCohortReclaimWhileBorrowing"
            and not in_order
        ):
            timestamp = moved + 0.001
    return Holder(f"{meta['namespace']}/{meta['name']}", meta["uid"], spec.get("priority", 0), timestamp)


def _seconds(time: str | None) -> float:
    return datetime.fromisoformat(time).timestamp() if time else -1e12
