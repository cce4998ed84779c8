"""Represents the requests of jobs. Jobs that Kueue's scheduler treats alike have the same request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, final
from weakref import WeakValueDictionary

from harness.base.errors import ClusterError, Fault
from harness.base.memo import Memo
from harness.models.cluster import Container, LimitRange, saturating_amounts
from harness.models.manifests import Fields, template_of
from harness.policy import Job, PodSet
from harness_plugins.kueue.state.number import Number

_LISTS = ("containers", "initContainers")

_SHAPE = (
    "affinity",
    "nodeSelector",
    "overhead",
    "priority",
    "resourceClaims",
    "runtimeClassName",
    "tolerations",
    "topologySpreadConstraints",
)
"""The fields of a pod spec, apart from the requests, that Kueue includes in the hash of equivalent workloads.
"""


OVER_LIMIT = "a container requests more than its limit"


class Claimed(NamedTuple):
    """The devices that a job claims, converted to resource quantities.

    Attributes:
        amounts: for each pod set, maps each resource to the quantity for the devices of one pod.
        refused: why Kueue does not queue the job, or "" if Kueue queues it.
    """

    amounts: tuple[Mapping[str, int], ...]
    refused: str


CountsClaims: TypeAlias = Callable[[Sequence[tuple[str, Sequence[Mapping[str, Any]]]], str], Claimed]
"""A function that counts the claims of named pod sets in a namespace. See `DeviceClaims`."""


@final
class Asks:
    """The request of a job. Jobs with the same request share one object.

    Attributes:
        present: the number of pods in each pod set.
        full: the number of pods in each pod set, including those that finished before the job arrived.
        counts: the number of pods in each pod set that need quota. It is valid until more pods finish.
        number: a number that differs for requests that are scheduled differently.
        reducible: whether partial admission can admit some pod set with fewer pods.
        invalid: why Kueue cannot admit the pods, whatever quota is free, or "".
        claimed: the devices that the pods claim, or None if there are no claims.
    """

    def __init__(
        self,
        pod_sets: tuple[PodSet, ...],
        number: Number,
        *,
        reclaims: bool,
        invalid: str = "",
        claimed: Claimed | None = None,
    ) -> None:
        self.pod_sets = pod_sets
        self.claimed = claimed
        self.present = tuple([pod_set.count for pod_set in pod_sets])
        self.full = tuple([pod_set.count + pod_set.reclaimed for pod_set in pod_sets])
        self.counts = self.present if reclaims else self.full
        self._number = number
        self.number = number.value
        self.reducible = any(
            pod_set.min_count < count for pod_set, count in zip(pod_sets, self.full, strict=True)
        )
        self.invalid = invalid


_MOST = 1 << 14  # A replay often uses the requests that the check before it has found.


@final
class Asking:
    """Finds the `Asks` of jobs. All existing jobs with the same request have the same number.

    Args:
        reclaims: whether finished pods need no quota.
        claims: a function that counts devices, based on the claim templates in the job's namespace.
        limits: the bounds of the LimitRanges, by namespace.
    """

    def __init__(self, *, reclaims: bool, claims: CountsClaims, limits: Mapping[str, LimitRange]) -> None:
        self._reclaims = reclaims
        self._claims = claims
        self._limits = limits
        # Keyed by content, because jobs share pod sets. The namespace matters for claims and LimitRanges.
        self._known: Memo[tuple[tuple[PodSet, ...], str], Asks] = Memo(_MOST)
        self._numbers: WeakValueDictionary[Any, Number] = WeakValueDictionary()
        self._next = 0

    def of(self, job: Job) -> Asks:
        """Returns the request of a job. It does not depend on the job's name, labels and limits.

        Raises:
            ClusterError: a pod template is not the template of a Pod.
        """
        key = job.pod_sets, job.namespace
        asks = self._known.get(key)
        if asks is None:
            asks = self._known[key] = self._asked(job)
        return asks

    def _asked(self, job: Job) -> Asks:
        faults: list[Fault] = []
        limits = self._limits.get(job.namespace)
        described = [
            _Described(each, limits, f"job {job.id}, pod set {each.name}", faults) for each in job.pod_sets
        ]
        if faults:
            raise ClusterError("the trace", faults)
        claimed = None
        if any(each.claims for each in described):
            claims = [
                (pod_set.name, each.claims) for pod_set, each in zip(job.pod_sets, described, strict=True)
            ]
            claimed = self._claims(claims, job.namespace)
        content = tuple(map(self._content, job.pod_sets, described))
        devices = () if claimed is None else tuple(tuple(sorted(each.items())) for each in claimed.amounts)
        invalid = next((each.invalid for each in described if each.invalid), "")
        number = self._number((content, devices))
        return Asks(job.pod_sets, number, reclaims=self._reclaims, invalid=invalid, claimed=claimed)

    def _number(self, content: Any) -> Number:
        number = self._numbers.get(content)
        if number is None:
            number = self._numbers[content] = Number(self._next)
            self._next += 1
        return number

    def _content(self, pod_set: PodSet, described: _Described) -> tuple[Any, ...]:
        """Returns a key that is the same for pod sets that are scheduled in the same way."""
        return (
            pod_set.name,
            pod_set.count if self._reclaims else pod_set.count + pod_set.reclaimed,
            pod_set.min_count,
            tuple(sorted(pod_set.requests.items())),
            described.shape,
            pod_set.topology,
        )


@final
class _Described:
    """A pod set as Kueue sees it, before quotas matter.

    Kueue compares a container's own requests with its limits, without other containers or the pod overhead.
    If no container has requests, the requests and limits in the trace are those of a single container.

    Attributes:
        shape: the fields of the template that distinguish pods, as JSON, or "" if there are none.
        invalid: why Kueue cannot admit such pods, or "". A container or the pod itself can request more than
            its own limit, or violate a bound of a LimitRange (upstream's ValidateAdmissibility).
        claims: the `resourceClaims` of the template.
    """

    def __init__(self, pod_set: PodSet, limits: LimitRange | None, where: str, faults: list[Fault]) -> None:
        template = template_of(pod_set, faults, where)
        self.invalid = _why_invalid([(pod_set.requests, pod_set.limits)], pod_set, limits)
        self.claims: list[Mapping[str, Any]] = []
        self.shape = ""
        if not template:  # most pod sets in traces have only requests
            return
        spec = Fields(template, where, faults)
        containers = [[_container(item) for item in spec.items(name)] for name in _LISTS]
        said = [(requests, limits) for kind in containers for requests, limits, _ in kind if requests]
        found = spec.raw("resourceClaims")
        self.claims = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        shape: dict[str, Any] = {
            name: spec.raw(name)
            for name in _SHAPE
            if name in spec
            and (name == "affinity" or spec.raw(name) not in ([], {}))  # empty values do not count
        }
        if any(containers):
            shape["containers"] = [[(requests, ports) for requests, _, ports in kind] for kind in containers]
        of_pod, limits_of_pod, _ = _container(spec)
        if said:
            self.invalid = _why_invalid(said, pod_set, limits)
        if of_pod:
            shape["resources"] = of_pod
            if _exceed(of_pod, limits_of_pod):
                self.invalid = OVER_LIMIT
        self.shape = json.dumps(shape, sort_keys=True) if shape else ""


def _container(fields: Fields) -> tuple[Mapping[str, int], Mapping[str, int], Any]:
    container = Container(fields, saturating_amounts)
    return container.requests, container.limits, fields.raw("ports")


def _why_invalid(
    containers: Sequence[tuple[Mapping[str, int], Mapping[str, int]]],
    pod_set: PodSet,
    limits: LimitRange | None,
) -> str:
    """Returns why the requests and limits of containers keep their pods from being admitted, or ""."""
    if any(_exceed(*each) for each in containers):
        return OVER_LIMIT
    return "" if limits is None else limits.why_refused(containers, pod_set.requests)


def _exceed(requests: Mapping[str, int], limits: Mapping[str, int]) -> bool:
    return any(requests.get(resource, 0) > limit for resource, limit in limits.items())
