"""The published lists of the fields of kinds, an object of each kind, and values that its fields may have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from fuzz.manifests import COHORT, FLAT, FLAVOR, NODES, OTHERS, QUEUES, TREE

from harness.cluster.coverage.verdicts import STEP, Place, Row, Verdict
from harness.cluster.kinds.table import KINDS

LISTS = Path(__file__).parent / "cluster" / "fields"

_GROUPS = {
    "core": "",
    "kueue": "kueue.x-k8s.io",
    "scheduler-plugins": "scheduling.x-k8s.io",
    "koordinator": "scheduling.sigs.k8s.io",
    "ack": "scheduling.sigs.k8s.io",
    "kubescheduler": "kubescheduler.config.k8s.io",
    "kube": "scheduling.k8s.io",
    "resource": "resource.k8s.io",
    "node": "node.k8s.io",
}
_OTHER_GROUPS = {
    "PriorityClass": "scheduling.k8s.io",
    "PodDisruptionBudget": "policy",
    "Configuration": "config.kueue.x-k8s.io",
}
_TEMPLATE = "spec.podSets[].template"


class ListedField(NamedTuple):
    """A row of a list; `leaf` is False where other fields of the list are in it."""

    path: str
    type: str
    enum: tuple[str, ...]
    default: Any
    leaf: bool


class ListedKind(NamedTuple):
    """A kind in one of its API versions."""

    group: str
    kind: str
    version: str
    fields: tuple[ListedField, ...]

    @property
    def place(self) -> Place:
        """What is said of its fields."""
        return KINDS[self.group, self.kind].coverage.of(self.version)

    def __str__(self) -> str:
        return f"{self.group}/{self.version} {self.kind}".lstrip("/")

    __repr__ = __str__


def listed_kinds() -> Iterator[ListedKind]:
    """Every list, with the fields of metadata, and of a Workload with those of its pods."""
    metadata, pod = _rows("meta-ObjectMeta-v1"), _rows("core-Pod-v1")
    for path in sorted(LISTS.glob("*.tsv")):
        source, kind, version = path.stem.rsplit("-", 2)
        if source == "meta":
            continue
        rows = _rows(path.stem)
        if kind not in ("Configuration", "KubeSchedulerConfiguration"):
            rows = metadata + rows
        if (source, kind) == ("kueue", "Workload"):
            rows += [[f"{_TEMPLATE}.{row[0]}", *row[1:]] for row in pod if row[0] != "spec"]
        paths = [row[0] for row in rows]
        above = {each.rpartition(".")[0].removesuffix("[]") for each in paths}
        fields = tuple(
            ListedField(
                name,
                kind_of,
                tuple(each for each in enum.split("|") if each),
                json.loads(default) if default else None,
                name not in above,
            )
            for name, kind_of, enum, default in rows
        )
        yield ListedKind(_OTHER_GROUPS.get(kind, _GROUPS[source]), kind, version, fields)


def _rows(name: str) -> list[list[str]]:
    lines = (LISTS / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [(line + "\t\t\t").split("\t")[:4] for line in lines[1:]]


def read_kinds() -> list[ListedKind]:
    """Those of the lists whose objects are read."""
    return [kind for kind in listed_kinds() if (kind.group, kind.kind) in KINDS]


def rows_of(group: str, kind: str) -> tuple[Row, ...]:
    """What is said of a kind, row by row."""
    return KINDS[group, kind].coverage.rows


# --- an object of each kind ---------------------------------------------------------------------------------

_SELECTOR = {
    "matchLabels": {"app": "x"},
    "matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}],
}
_NODE_TERM = {
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
_POD_TERM = {
    "topologyKey": "zone",
    "labelSelector": _SELECTOR,
    "namespaces": ["default"],
    "namespaceSelector": _SELECTOR,
    "matchLabelKeys": ["app"],
}
_PODS = {
    "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": _POD_TERM}],
}
_POD_SPEC: dict[str, Any] = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODE_TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": _NODE_TERM}],
        },
        "podAffinity": _PODS,
        "podAntiAffinity": _PODS,
    },
    "topologySpreadConstraints": [
        {
            "topologyKey": "zone",
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": _SELECTOR,
        }
    ],
    "containers": [
        {
            "name": "c",
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP", "hostIP": "0.0.0.0"}],
        }
    ],
    "initContainers": [
        {
            "name": "i",
            "resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}},
            "ports": [{"containerPort": 81, "hostPort": 8081}],
        }
    ],
    "tolerations": [{"key": "k", "effect": "NoSchedule"}],
}
_TOPOLOGY = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Topology",
    "metadata": {"name": "other"},
    "spec": {"levels": [{"nodeLabel": "rack"}]},
}
_PROFILE = {
    "schedulerName": "default-scheduler",
    "plugins": {
        "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
        "multiPoint": {"disabled": [{"name": "ImageLocality"}]},
    },
    "pluginConfig": [{"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 20}}],
}


def objects(listed: ListedKind) -> list[dict[str, Any]]:
    """An object of a kind that has much of what it can have, and after it those that it refers to."""
    if listed.group == "scheduling.k8s.io" and listed.kind != "PriorityClass":
        return [_scheduling_group(listed)]
    made, *others = deepcopy(_objects(listed))
    spec = made.get("spec", {})
    match listed.kind:
        case "Pod":
            spec.update(deepcopy(_POD_SPEC))
        case "Workload":
            spec["podSets"][0]["template"] = {"spec": deepcopy(_POD_SPEC)}
        case "ClusterQueue":
            spec["namespaceSelector"] = deepcopy(_SELECTOR)
        case "PodDisruptionBudget":
            spec["selector"] = deepcopy(_SELECTOR)
        case "ResourceFlavor":
            spec["nodeTaints"] = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
            spec["tolerations"] = deepcopy(_POD_SPEC["tolerations"])
        case "PodGroup":
            made["spec"] = {"minMember": 2}
        case "KubeSchedulerConfiguration":
            made["profiles"] = [deepcopy(_PROFILE)]
    group = f"{listed.group}/" if listed.group else ""
    made["apiVersion"] = f"{group}{listed.version}"
    if listed.version == "v1beta1":
        _older(made)
    return [made, *others]


def _objects(listed: ListedKind) -> list[dict[str, Any]]:
    match listed.kind:
        case "ClusterQueue":
            return [QUEUES[0], FLAVOR]
        case "LocalQueue":
            return [_named("LocalQueue"), *QUEUES[:2], FLAVOR]
        case "ResourceFlavor":
            return [FLAVOR, _TOPOLOGY]
        case "Cohort":
            return [COHORT]
        case "Topology":
            return [deepcopy(_TOPOLOGY)]
        case "Node":
            return [NODES[0]]
        case "ElasticQuotaTree":
            return [TREE]
        case "ElasticQuota":
            flat = deepcopy(FLAT[0])
            if listed.group == "scheduling.x-k8s.io":
                del flat["metadata"]["labels"], flat["metadata"]["annotations"]
            return [flat]
        case "Pod":
            return [_named("Pod"), NODES[0]]
        case "Namespace" | "PodDisruptionBudget" | "PriorityClass" | "PodGroup" | "Workload":
            return [_named(listed.kind)]
        case "ResourceClaimTemplate":
            return [_claim_template(listed.version)]
        case "RuntimeClass":
            return [{"kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"}]
        case "LimitRange":
            item = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}
            return [{"kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [item]}}]
        case "WorkloadPriorityClass" | "Configuration" | "KubeSchedulerConfiguration":
            return [_named(listed.kind)]
    raise AssertionError(f"there is no object of {listed}")


def _scheduling_group(listed: ListedKind) -> dict[str, Any]:
    """A Workload or PodGroup of kube-scheduler's own."""
    groups = {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 3}}}]}
    templates = {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": {"gang": {"minCount": 3}}}]}
    group = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    of_workload = groups if listed.version == "v1alpha1" else templates
    return {
        "apiVersion": f"{listed.group}/{listed.version}",
        "kind": listed.kind,
        "metadata": {"name": "g", "namespace": "default"},
        "spec": of_workload if listed.kind == "Workload" else group,
    }


def _claim_template(version: str) -> dict[str, Any]:
    asked = {"deviceClassName": "mig-1g", "count": 3}
    request = {"name": "gpu", **(asked if version == "v1beta1" else {"exactly": asked})}
    return {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request], "constraints": [{}], "config": [{}]}}},
    }


def _named(kind: str) -> dict[str, Any]:
    return next(each for each in OTHERS if each["kind"] == kind)


def _older(made: dict[str, Any]) -> None:
    """Write an object in v1beta1's spelling."""
    spec = made.get("spec", {})
    for new, old in (("cohortName", "cohort"), ("priorityClassRef", None)):
        value = spec.pop(new, None) if made["kind"] in ("ClusterQueue", "Workload") else None
        if value is not None and old:
            spec[old] = value
    if made["kind"] == "Configuration":
        made["fairSharing"]["enable"] = made["waitForPodsReady"]["enable"] = True


# --- values -------------------------------------------------------------------------------------------------

_TIME = "2026-02-03T04:05:06Z"

_VALUES: Mapping[str, list[Any]] = {
    "matchExpressions[].operator": ["NotIn"],
    "matchFields[].operator": ["NotIn"],
    "tolerations[].operator": ["Exists"],
    ".effect": ["NoExecute"],
    "atchLabelKeys": [["app"], []],
    "nodeAffinityPolicy": ["Ignore"],
    "ownerReferences[].kind": ["DaemonSet"],
    "nodeTaintsPolicy": ["Honor"],
    "whenUnsatisfiable": ["DoNotSchedule"],
    "initContainers[].restartPolicy": ["Always"],
    "spec.preemptionPolicy": ["PreemptLowerPriority", "Never"],
    "template.spec.preemptionPolicy": ["Never"],
    "axUnavailable": ["30%", 1],
    "multiPoint.disabled[].name": ["DefaultPreemption"],
    "admissionMode": ["NoAdmissionFairSharing"],
    "preemptionStrategies": [["LessThanInitialShare"]],
    "spec.clusterQueue": ["b"],
    "status.phase": ["Succeeded"],
    "featureGates": [{"PartialAdmission": False}],
    "requeuingStrategy.timestamp": ["Eviction"],
    "resources.quotaCheckStrategy": ["IgnoreUndeclared"],
    "blockAdmission": [True],
    "status.conditions[].status": ["False"],
    "status.conditions[].type": ["Ready"],
    "podSetSliceSize": [2],
    "podCounts.individual": [[3]],
    "topologyAssignment.levels": [["host"]],
}
"""Values of fields by the end of their path, where the type does not say what they may be."""


def values_of(field: ListedField) -> list[Any]:
    """Values that a field may have, by its type."""
    longest = max((end for end in _VALUES if field.path.endswith(end)), key=len, default="")
    if longest:
        return _VALUES[longest]
    if field.enum:
        return list(field.enum)
    name = field.type.lstrip("*")
    if "date-time" in name:
        return [_TIME]
    if name.startswith(("integer", "int32", "int64")):
        return [7, 1, 2]
    if name == "int-or-string":
        return ["3", 1, "0"]
    if name in ("number", "float32"):
        return [1.5]
    if name.startswith("bool"):
        return [True, False]
    if name == "array" or name.startswith("[]"):
        return [["other"]]
    if name == "object" or name.startswith("map["):
        return [{"other": {"float64": 1.5, "bool": True}.get(name.rpartition("]")[2], "1")}]
    if "Duration" in name:
        return ["90s"]
    return ["other", "Never"]


_PLACES = "status.admission.podSetAssignments[].topologyAssignment"

_MAPPINGS = "resources.deviceClassMappings"

_TOGETHER: Mapping[str, Mapping[str, Any]] = {
    "Pod metadata.deletionGracePeriodSeconds": {"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"},
    "Pod spec.containers[].ports[].containerPort": {
        "spec.containers[].ports": [{"containerPort": 80}],
        "spec.hostNetwork": True,
    },
    "Pod spec.initContainers[].ports[].containerPort": {
        "spec.initContainers[].ports": [{"containerPort": 81}],
        "spec.initContainers[].restartPolicy": "Always",
        "spec.hostNetwork": True,
    },
    **{
        f"Pod spec.initContainers[].ports[].{name}": {"spec.initContainers[].restartPolicy": "Always"}
        for name in ("hostIP", "hostPort", "protocol")
    },
    "Pod spec.hostNetwork": {"spec.containers[].ports": [{"containerPort": 80}]},
    "Node status.capacity": {"status.allocatable": None, "status.capacity": {"cpu": 8}},
    **{
        f"Workload status.accumulatedPast{name}TimeSeconds": {"spec.maximumExecutionTimeSeconds": 100}
        for name in ("Execution", "Exexcution")
    },
    "Node status.conditions[].type": {"status.conditions": [{"type": "Other", "status": "False"}]},
    "Node status.conditions[].status": {"status.conditions": [{"type": "Ready", "status": "True"}]},
    "PodDisruptionBudget spec.maxUnavailable": {"spec.minAvailable": None},
    "ClusterQueue spec.admissionChecksStrategy.admissionChecks[].onFlavors": {
        "spec.admissionChecksStrategy.admissionChecks[].name": "check"
    },
    **{
        f"Workload spec.podSets[].topologyRequest.{name}": {"spec.podSets[].topologyRequest": request}
        for request, names in (
            (
                {"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 1},
                ("podSetSliceRequiredTopology", "podSetSliceSize"),
            ),
            (
                {"podsetSliceRequiredTopologyConstraints": [{"topology": "rack", "size": 3}]},
                tuple(f"podsetSliceRequiredTopologyConstraints[].{each}" for each in ("topology", "size")),
            ),
        )
        for name in names
    },
    **{
        f"Workload {_PLACES}.{name}": {
            _PLACES: {
                "levels": ["rack"],
                "slices": [
                    {"domainCount": 1, "podCounts": {"universal": 1}, "valuesPerLevel": [{"universal": "a"}]}
                ],
            }
        }
        for name in (
            "levels",
            "slices[].domainCount",
            "slices[].podCounts.individual",
            "slices[].podCounts.universal",
            "slices[].valuesPerLevel[].universal",
            "slices[].valuesPerLevel[].individual.roots",
        )
    },
    **{
        f"Workload {_PLACES}.slices[].valuesPerLevel[].individual.{name}": {
            _PLACES: {
                "levels": ["rack"],
                "slices": [
                    {
                        "domainCount": 1,
                        "podCounts": {"universal": 1},
                        "valuesPerLevel": [{"individual": {"roots": ["1"]}}],
                    }
                ],
            }
        }
        for name in ("prefix", "suffix")
    },
    **{
        f"Workload {_PLACES}.domains[].{name}": {
            _PLACES: {"levels": ["rack"], "domains": [{"values": ["a"], "count": 1}]}
        }
        for name in ("values", "count")
    },
    **{
        f"Configuration {_MAPPINGS}[].{name}": {_MAPPINGS: [{"name": "gpus", "deviceClassNames": ["mig-1g"]}]}
        for name in (
            "name",
            "deviceClassNames",
            *(f"sources[].counter.{each}" for each in ("name", "driver", "deviceSelector")),
            *(f"sources[].capacity.{each}" for each in ("name", "driver", "deviceSelector")),
        )
    },
    "KubeSchedulerConfiguration profiles[].plugins.multiPoint.disabled[].name": {
        "profiles[].plugins.postFilter": None
    },
}
"""What else an object has, or has not, for a field to count in it."""


def together_with(listed: ListedKind, field: ListedField) -> dict[str, Any]:
    """The object in which a field is given another value."""
    made = objects(listed)[0]
    for path, value in _TOGETHER.get(f"{listed.kind} {field.path}", {}).items():
        made = with_value(made, path, value)
    return made


def with_value(content: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with another value at a path, in the first item of each list on the way.

    A mapping is added to the one that is there. What the path does not pass is the same object in both.
    """
    changed: dict[str, Any] = dict(content)
    here: Any = changed
    *way, last = path.split(".")
    for step in way:
        name = step.removesuffix("[]")
        inner = here.get(name)
        if step.endswith("[]"):
            first, *more = inner if isinstance(inner, list) and inner else [None]
            inner = dict(first) if isinstance(first, dict) else {}
            here[name] = [inner, *more] if isinstance(first, dict) else [inner]
        else:
            inner = here[name] = dict(inner) if isinstance(inner, dict) else {}
        here = inner
    both = isinstance(value, dict) and isinstance(here.get(last), dict)
    here[last] = {**here[last], **value} if both else value
    return changed


def said_of(place: Place, path: str) -> Row | None:
    """The verdict on a path below a place, or None.

    A mapping that only leads to fields counts as modelled.
    """
    row = place.covers
    for step in STEP.findall(path):
        one = place.free if step == "{}" else place.find(step.strip("{}"))
        inner = place.item if step == "[]" else one
        if inner is None:
            return row
        place, row = inner, inner.covers or (None if inner.row else row)
    return place.row or (row if place.ends else Row(path, Verdict.MODELLED))
