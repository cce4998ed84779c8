"""In the middle of what a dump can be: kinds of dumps, of which some are to be tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.studies.forecasting.api_objects import Manifest

Objects = Sequence[Manifest]


def _says(each: Manifest, condition: str, status: str) -> bool:
    """Whether a condition of a Workload has this status."""
    told = each["status"].get("conditions", ())
    return any(item["type"] == condition and item["status"] == status for item in told)


def _given(each: Manifest) -> list[Manifest]:
    """What the pod sets of a Workload were admitted with."""
    found: list[Manifest] = each["status"].get("admission", {}).get("podSetAssignments", [])
    return found


def _where(objects: Objects) -> dict[str, set[bool]]:
    """Job -> whether its Pods have nodes: some, all or none."""
    found: dict[str, set[bool]] = {}
    for each in objects:
        for owner in each["metadata"].get("ownerReferences", ()):
            if each["kind"] == "Pod":
                found.setdefault(owner["name"], set()).add("nodeName" in each["spec"])
    return found


def _half_bound(objects: Objects) -> bool:
    return {True, False} in _where(objects).values()


def _reduced(objects: Objects) -> bool:
    return any(
        one["count"] < asked["count"]
        for each in objects
        if each["kind"] == "Workload"
        for one, asked in zip(_given(each), each["spec"]["podSets"], strict=False)
    )


def _without_pods(objects: Objects) -> bool:
    there = _where(objects)
    return any(
        bool(_given(each)) and _says(each, "Evicted", "True") and each["metadata"]["name"] not in there
        for each in objects
    )


def _flavors(objects: Objects) -> bool:
    return any(
        len({name for one in _given(each) for name in one["flavors"].values()}) > 1 for each in objects
    )


KINDS: dict[str, Callable[[Objects], bool]] = {
    "a pod that is terminating": lambda some: any("deletionTimestamp" in each["metadata"] for each in some),
    "a pod with a nomination": lambda some: any("nominatedNodeName" in each["status"] for each in some),
    "a gang that is half bound": _half_bound,
    "a partial admission": _reduced,
    "a workload on its way out without pods": _without_pods,
    "pods that are not ready": lambda some: any(_says(each, "PodsReady", "False") for each in some),
    "a backoff": lambda some: any(_says(each, "Requeued", "False") for each in some),
    "a workload that was deactivated": lambda some: any(each["spec"].get("active") is False for each in some),
    "a workload of two flavors": _flavors,
    "a job of ten pods": lambda some: any(each["spec"].get("parallelism", 0) >= 10 for each in some),
}
"""What it is -> whether it is in the objects of a dump."""
