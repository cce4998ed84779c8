"""Adds the overhead of RuntimeClasses and the defaults of LimitRanges to the requests of Workloads.

Kueue adds them in memory before it queues a Workload, so a dump of the Workload doesn't contain them. The
upstream code is `AdjustResources` in pkg/workload/resources.go and `Summarize` in pkg/util/limitrange.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, final

from harness.base.json_text import mapping_of
from harness.base.units import format_amounts
from harness.base.values import Value, fixed
from harness.cluster.draft import Draft, read_metadata
from harness.cluster.kinds.containers import Amounts
from harness.cluster.kinds.workloads import Workload, workload_from
from harness.cluster.model import NEWER, frozen
from harness.cluster.yaml.fields import Fields

_CONTAINER, _POD = "Container", "Pod"
_OUTSIDE = "requests more or less than a LimitRange of its namespace allows"


@fixed()
class RuntimeClass(Value):
    """A RuntimeClass. `overhead` maps a resource to the quantity that a pod needs beside its containers."""

    name: str
    overhead: Mapping[str, int] = field(default_factory=frozen)


@fixed()
class LimitRange(Value):
    """The limits and requests that containers of a namespace have by default, and bounds, by resource.

    Attributes:
        least, most: the bounds of the requests and limits of a container.
        pod_least, pod_most: the bounds of the requests of a pod.
    """

    name: str
    namespace: str
    default: Mapping[str, int] = field(default_factory=frozen)
    default_request: Mapping[str, int] = field(default_factory=frozen)
    least: Mapping[str, int] = field(default_factory=frozen, metadata=NEWER)
    most: Mapping[str, int] = field(default_factory=frozen, metadata=NEWER)
    pod_least: Mapping[str, int] = field(default_factory=frozen, metadata=NEWER)
    pod_most: Mapping[str, int] = field(default_factory=frozen, metadata=NEWER)

    def why_refused(self, containers: Iterable[tuple[Amounts, Amounts]], pod: Amounts) -> str:
        """Returns why Kueue refuses a pod with these requests, or "".

        `containers` has the requests and the limits of each container. No request exceeds its limit.
        Upstream: `ValidatePodSpec` in pkg/util/limitrange/limitrange.go.
        """
        for requests, limits in containers:
            if _beyond({**requests, **limits}, self.most) or _beyond(self.least, {**limits, **requests}):
                return f"a container {_OUTSIDE}"
        outside = _beyond(pod, self.pod_most) or _beyond(self.pod_least, pod)
        return f"a pod {_OUTSIDE}" if outside else ""


def _beyond(amounts: Amounts, most: Amounts) -> bool:
    return any(amounts.get(resource, 0) > limit for resource, limit in most.items())


def read_runtime_class(fields: Fields, draft: Draft) -> None:
    """Read the overhead of a RuntimeClass."""
    name = read_metadata(fields).name
    draft.runtime_classes.add(name, RuntimeClass(name, fields.child("overhead").amounts("podFixed")), fields)


def read_limit_range(fields: Fields, draft: Draft) -> None:
    """Read the defaults of a LimitRange for containers, and its bounds for containers and pods.

    An API server writes missing defaults into a LimitRange: the default limit of a resource is its `max`, and
    its default request is the default limit, or else its `min`.
    """
    metadata = read_metadata(fields)
    limits: dict[str, int] = {}
    requests: dict[str, int] = {}
    bounds: dict[str, tuple[Amounts, Amounts]] = {_CONTAINER: ({}, {}), _POD: ({}, {})}
    for item in fields.child("spec").items("limits"):
        most, default = item.amounts("max"), item.amounts("default")
        least, request = item.amounts("min"), item.amounts("defaultRequest")
        kind = item.string("type", required=True)
        if kind == _CONTAINER:
            default = {**most, **default}
            limits = {**default, **limits}
            requests = {**least, **default, **request, **requests}
        if kind in bounds:
            bounds[kind] = _closest(bounds[kind], (least, most))
    found = LimitRange(
        metadata.name,
        metadata.namespace,
        frozen(limits),
        frozen(requests),
        *(frozen(each) for kind in (_CONTAINER, _POD) for each in bounds[kind]),
    )
    draft.limit_ranges.add((found.namespace, found.name), found, fields)


def _closest(one: tuple[Amounts, Amounts], other: tuple[Amounts, Amounts]) -> tuple[Amounts, Amounts]:
    """Returns the largest of two lower bounds and the smallest of two upper bounds for each resource."""
    (least, most), (other_least, other_most) = one, other
    lower = {name: max(least.get(name, amount), amount) for name, amount in other_least.items()}
    upper = {name: min(most.get(name, amount), amount) for name, amount in other_most.items()}
    return {**least, **lower}, {**most, **upper}


def limits_by_namespace(ranges: Mapping[tuple[str, str], LimitRange]) -> dict[str, LimitRange]:
    """Returns what all LimitRanges of a namespace say together, by namespace.

    If several LimitRanges have a default for a resource, the first one by name counts. Of several bounds, the
    closest one counts.
    """
    found: dict[str, LimitRange] = {}
    for (namespace, name), each in sorted(ranges.items()):
        first = found.get(namespace, LimitRange("", namespace))
        found[namespace] = LimitRange(
            name,
            namespace,
            frozen({**each.default, **first.default}),
            frozen({**each.default_request, **first.default_request}),
            *map(frozen, _closest((first.least, first.most), (each.least, each.most))),
            *map(frozen, _closest((first.pod_least, first.pod_most), (each.pod_least, each.pod_most))),
        )
    return found


@final
class RequestDefaults:
    """The quantities that the RuntimeClasses and LimitRanges of a cluster add to requests."""

    def __init__(
        self, classes: Mapping[str, RuntimeClass], ranges: Mapping[tuple[str, str], LimitRange]
    ) -> None:
        self._classes = classes
        self._ranges = limits_by_namespace(ranges)

    def workload(self, manifest: Mapping[str, Any], *, limits_first: bool = False) -> dict[str, Any]:
        """Returns a Workload's manifest with the overhead and the default requests added to its pod sets.

        For `limits_first`, see `pod`.
        """
        namespace = str(mapping_of(manifest, "metadata").get("namespace") or "default")
        spec = mapping_of(manifest, "spec")
        pod_sets = [
            {
                **each,
                "template": {
                    **template,
                    "spec": self.pod(mapping_of(template, "spec"), namespace, limits_first),
                },
            }
            for each in spec["podSets"]
            for template in (mapping_of(each, "template"),)
        ]
        return {**manifest, "spec": {**spec, "podSets": pod_sets}}

    def pod(self, spec: Mapping[str, Any], namespace: str, limits_first: bool = False) -> dict[str, Any]:
        """Returns the `spec` of a pod with the overhead and the default requests added to it.

        If `limits_first` is true, a container without a request gets its own limit as the request, before the
        default request applies. It is true for pods that an API server creates, and false for the templates
        in a Workload.
        """
        found = dict(spec)
        of_class = self._classes.get(str(spec.get("runtimeClassName")))
        if of_class is not None and of_class.overhead and not spec.get("overhead"):
            found["overhead"] = format_amounts(of_class.overhead)
        own = self._ranges.get(namespace)
        for name in ("containers", "initContainers"):
            if own is not None and isinstance(spec.get(name), list):
                found[name] = [_with_defaults(each, own, limits_first) for each in spec[name]]
        return found


def add_request_defaults(draft: Draft) -> None:
    """Add overhead and defaults to the Workloads that were read, and warn about missing RuntimeClasses.

    If a Workload holds less quota than its increased requests, Kueue admitted it with its own requests. It
    then keeps its own requests.
    """
    if draft.faults:
        return
    defaults = RequestDefaults(draft.runtime_classes, draft.limit_ranges)
    namespaces = {namespace for namespace, _ in draft.limit_ranges}
    for key, own in draft.workloads.items():
        fields = draft.workloads.fields(key)
        classes = set(_class_names(fields))
        for name in sorted(classes - draft.runtime_classes.keys()):
            what = f"the manifests have no RuntimeClass {name}, so no overhead is added"
            draft.warnings.add("Workload", own.key, what)
        if key[0] in namespaces or classes & draft.runtime_classes.keys():
            manifest = defaults.workload({name: fields.raw(name) for name in fields})
            found = workload_from(Fields(manifest, fields.where, draft.faults), draft.pod_sets)
            if not _holds_less(own, found):
                draft.workloads[key] = found


def _holds_less(own: Workload, found: Workload) -> bool:
    """Returns True if a Workload holds less than its pods would request with these additions."""
    if not own.holds_quota or own.admission is None:
        return False
    given = {each.name: each for each in own.admission.assignments}
    return any(
        amount > before.requests.get(resource, 0)
        and given[after.name].usage.get(resource, 0) < amount * given[after.name].count
        for before, after in zip(own.pod_sets, found.pod_sets, strict=True)
        if after.name in given
        for resource, amount in after.requests.items()
    )


def _class_names(workload: Fields) -> Iterator[str]:
    for pod_set in workload.raw("spec")["podSets"]:
        name = mapping_of(mapping_of(pod_set, "template"), "spec").get("runtimeClassName")
        if isinstance(name, str) and name:
            yield name


def _with_defaults(container: Any, defaults: LimitRange, limits_first: bool) -> Any:
    """Returns a container with defaults. A faulty one stays as it is, so that a reader adds the fault."""
    own = (container.get("resources") or {}) if isinstance(container, Mapping) else None
    if not isinstance(own, Mapping) or not all(
        isinstance(own.get(name) or {}, Mapping) for name in ("limits", "requests")
    ):
        return container
    named = mapping_of(own, "limits")
    limits = {**format_amounts(defaults.default), **named}
    requests = {
        **format_amounts(defaults.default_request),
        **(named if limits_first else {}),
        **mapping_of(own, "requests"),
    }
    return {**container, "resources": {**own, "limits": limits, "requests": requests}}
