"""Manifests of every kind, and specifications of traces, with something else at some places."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import yaml

from fuzz.junk import QUANTITIES, at, damaged, mutated, places

_KUEUE = "kueue.x-k8s.io/v1beta2"


def _quota(name: str, nominal: str, **limits: str) -> dict[str, Any]:
    return {"name": name, "nominalQuota": nominal, **limits}


def _queue(name: str, *resources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    covered = [each["name"] for each in resources]
    groups = [{"coveredResources": covered, "flavors": [{"name": "default", "resources": list(resources)}]}]
    return {
        "apiVersion": _KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"cohortName": "all", "namespaceSelector": {}, "resourceGroups": groups, **spec},
    }


_CONTAINER = {
    "name": "c",
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}},
    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP", "hostIP": "0.0.0.0"}],
}
_POD_SPEC: dict[str, Any] = {
    "containers": [_CONTAINER],
    "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}],
    "overhead": {"cpu": "10m"},
    "nodeSelector": {"zone": "z"},
    "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
    "volumes": [{"name": "v", "emptyDir": {}}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}],
                        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                    }
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 5,
                    "preference": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
                }
            ],
        },
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 3,
                    "podAffinityTerm": {
                        "topologyKey": "zone",
                        "labelSelector": {"matchLabels": {"app": "x"}},
                        "namespaces": ["default"],
                        "namespaceSelector": {},
                        "matchLabelKeys": ["app"],
                    },
                }
            ]
        },
    },
    "topologySpreadConstraints": [
        {
            "topologyKey": "zone",
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            "minDomains": 1,
        }
    ],
}

FLAVOR: dict[str, Any] = {
    "apiVersion": _KUEUE,
    "kind": "ResourceFlavor",
    "metadata": {"name": "default"},
    "spec": {"nodeTaints": [], "tolerations": [{"key": "k", "operator": "Exists"}]},
}
QUEUES: list[dict[str, Any]] = [
    _queue(
        "a",
        _quota("cpu", "4", borrowingLimit="2", lendingLimit="1"),
        _quota("memory", "8Gi"),
        _quota("nvidia.com/gpu", "4"),
        queueingStrategy="BestEffortFIFO",
        stopPolicy="None",
        preemption={
            "withinClusterQueue": "LowerPriority",
            "reclaimWithinCohort": "Any",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
        },
        flavorFungibility={"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
        fairSharing={"weight": "2"},
        admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"},
    ),
    _queue("b", _quota("cpu", "4"), _quota("memory", "8Gi"), _quota("nvidia.com/gpu", "4")),
    _queue("c", _quota("cpu", "0"), _quota("memory", "0"), _quota("nvidia.com/gpu", "0")),
]
COHORT: dict[str, Any] = {
    "apiVersion": _KUEUE,
    "kind": "Cohort",
    "metadata": {"name": "all"},
    "spec": {
        "parentName": "top",
        "fairSharing": {"weight": "1"},
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [{"name": "default", "resources": [_quota("cpu", "2", borrowingLimit="3")]}],
            }
        ],
    },
}
NODES: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"zone": "z", "kubernetes.io/hostname": "n1"}},
        "spec": {
            "taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}],
            "unschedulable": False,
        },
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "10", "nvidia.com/gpu": "4"}},
    },
    {
        "apiVersion": "harness/v1",
        "kind": "NodePool",
        "metadata": {"name": "pool"},
        "spec": {
            "count": 3,
            "template": {
                "metadata": {"labels": {"zone": "y"}},
                "spec": {"taints": []},
                "allocatable": {"cpu": 4, "memory": "16Gi", "pods": 10, "nvidia.com/gpu": 4},
            },
        },
    },
]
TREE: dict[str, Any] = {
    "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
    "kind": "ElasticQuotaTree",
    "metadata": {"name": "elastic-quota-tree", "namespace": "kube-system"},
    "spec": {
        "root": {
            "name": "root",
            "min": {"cpu": "20", "memory": "64Gi", "nvidia.com/gpu": "8"},
            "max": {"cpu": "20", "memory": "64Gi", "nvidia.com/gpu": "8"},
            "children": [
                {
                    "name": name,
                    "min": {"cpu": cpu, "memory": "8Gi", "nvidia.com/gpu": "2"},
                    "max": {"cpu": "20", "memory": "64Gi", "nvidia.com/gpu": "8"},
                    "namespaces": [name],
                }
                for name, cpu in (("a", "4"), ("b", "8"), ("c", "0"))
            ],
        }
    },
}
_KOORDINATOR = "quota.scheduling.koordinator.sh/"
OTHERS: list[dict[str, Any]] = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 10,
        "globalDefault": True,
        "preemptionPolicy": "PreemptLowerPriority",
    },
    {"apiVersion": _KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 10},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"team": "x"}}},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "a", "uid": "u", "labels": {"app": "x"}},
        "spec": {
            **_POD_SPEC,
            "nodeName": "n1",
            "priority": 3,
            "preemptionPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "DisruptionTarget", "status": "False", "reason": "x"}],
        },
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "a"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": 1, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
    },
    {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 2, "minResources": {"cpu": 1}, "scheduleTimeoutSeconds": 10},
    },
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 50,
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"postFilter": {"disabled": [{"name": "x"}]}},
                "pluginConfig": [
                    {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 10}},
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}},
                ],
            }
        ],
    },
    {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "admissionFairSharing": {
            "usageHalfLifeTime": "168h",
            "usageSamplingInterval": "5m",
            "resourceWeights": {"cpu": 1.5, "memory": 0},
        },
        "featureGates": {"PartialAdmission": True},
        "waitForPodsReady": {
            "timeout": "5m",
            "recoveryTimeout": "0s",
            "blockAdmission": False,
            "requeuingStrategy": {
                "timestamp": "Creation",
                "backoffLimitCount": 2,
                "backoffBaseSeconds": 10,
                "backoffMaxSeconds": 60,
            },
        },
    },
    {
        "apiVersion": _KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"clusterQueue": "a", "stopPolicy": "None", "fairSharing": {"weight": "1"}},
        "status": {"fairSharing": {"admissionFairSharingStatus": {"consumedResources": {"cpu": "100"}}}},
    },
    {
        "apiVersion": _KUEUE,
        "kind": "Workload",
        "metadata": {
            "name": "w",
            "namespace": "default",
            "uid": "u1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"kueue.x-k8s.io/priority-boost": "3"},
        },
        "spec": {
            "queueName": "a",
            "priority": 100,
            "priorityClassRef": {"name": "high", "kind": "WorkloadPriorityClass"},
            "active": True,
            "podSets": [{"name": "main", "count": 2, "minCount": 1, "template": {"spec": _POD_SPEC}}],
        },
        "status": {
            "admission": {
                "clusterQueue": "a",
                "podSetAssignments": [
                    {"name": "main", "count": 2, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "2"}}
                ],
            },
            "conditions": [
                {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "Admitted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ],
            "reclaimablePods": [{"name": "main", "count": 1}],
        },
    },
]
FLAT: list[dict[str, Any]] = [
    {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {
            "name": name,
            "namespace": name,
            "labels": {f"{_KOORDINATOR}is-parent": "false", f"{_KOORDINATOR}tree-id": "t"},
            "annotations": {
                f"{_KOORDINATOR}namespaces": f'["{name}"]',
                f"{_KOORDINATOR}shared-weight": '{"cpu": "2"}',
            },
        },
        "spec": {
            "min": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"},
            "max": {"cpu": "20", "memory": "64Gi", "nvidia.com/gpu": "8"},
        },
    }
    for name in ("a", "b", "c")
]


def cluster(random: Random) -> bytes:
    """The manifests of a cluster: one or two places hold something else, or the text is damaged."""
    return _written(_some(chosen(random), random), random)


def chosen(random: Random) -> list[Any]:
    """Objects that make a cluster together, without a fault."""
    objects: list[Any] = []
    if random.randrange(3):
        objects += [FLAVOR, *QUEUES, *([COHORT] if random.randrange(2) else [])]
    if random.randrange(2) or not objects:
        objects += NODES
    if random.randrange(3) == 0:
        objects += random.choice(([TREE], FLAT))
    return objects + random.sample(OTHERS, random.choice((0, 1, 2, 3)))


def specification(random: Random) -> bytes:
    """A specification of a synthetic trace, with something else at some places."""
    return _written(_some([random.choice(_SPECS)], random), random)


def _some(objects: list[Any], random: Random) -> list[Any]:
    """Objects of which one or two were changed, quantities more often than other places."""
    for _ in range(random.choice((1, 1, 1, 2))):
        number = random.randrange(len(objects))
        if random.randrange(4):
            objects = [*objects[:number], mutated(objects[number], random), *objects[number + 1 :]]
        else:
            objects = json.loads(json.dumps(objects))
            found = [path for path in places(objects) if isinstance(_near(objects, path), str | int)]
            wanted = [path for path in found if str(path[-1]) in _AMOUNTS or path[-1] in ("cpu", "memory")]
            path = random.choice(wanted or found)
            at(objects, path[:-1])[path[-1]] = random.choice(QUANTITIES)
    return objects


_AMOUNTS = ("nominalQuota", "borrowingLimit", "lendingLimit", "nvidia.com/gpu", "pods", "weight", "count")


def _near(objects: list[Any], path: tuple[Any, ...]) -> Any:
    return at(objects, path) if path else None


def _written(objects: list[Any], random: Random) -> bytes:
    """The objects as a file: YAML or JSON, one document each or a list."""
    how = random.randrange(6)
    if how == 0 and len(objects) != 1:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    elif how == 1:
        text = "---\n".join(yaml.safe_dump(each, allow_unicode=True) for each in objects)
    else:
        text = "\n---\n".join(map(json.dumps, objects))
    data = text.encode(errors="surrogatepass" if random.randrange(20) == 0 else "replace")
    return damaged(data, random) if random.randrange(8) == 0 else data


_SPECS: tuple[dict[str, Any], ...] = (
    {
        "jobs": 40,
        "span": "2d",
        "tenants": [
            {
                "queue": "a",
                "count": 2,
                "namespace": "team",
                "at_most": 15,
                "arrivals": {"diurnal": {"rate": "5/h", "swing": 0.8, "peak": 15, "weekend": 0.3}},
                "jobs": [
                    {
                        "weight": 9,
                        "duration": {"lognormal": {"median": "45m", "p90": "6h"}, "max": "3d"},
                        "requests": {
                            "nvidia.com/gpu": {"choice": {"1": 5, "2": 2}},
                            "cpu": 16,
                            "memory": "128Gi",
                        },
                        "priority": {"choice": {"100": 4, "500": 1}},
                    },
                    {
                        "weight": 1,
                        "duration": {"weibull": {"scale": "2h", "shape": 0.8}, "min": "1m", "max": "10h"},
                        "pods": {"uniform": {"from": 1, "to": 3}},
                        "gang": True,
                        "requests": {"cpu": {"pareto": {"least": 1, "shape": 2.0}}},
                    },
                ],
            },
            {
                "queue": "b",
                "arrivals": {"bursty": [{"rate": "0/h", "stay": "18h"}, {"rate": "90/h", "stay": "2h"}]},
                "jobs": [
                    {"duration": {"exponential": {"mean": "40m"}}, "requests": {"cpu": 8}, "priority": 10}
                ],
            },
            {
                "queue": "c",
                "arrivals": {"poisson": {"rate": "6/h"}},
                "jobs": [{"duration": "30s", "requests": {"cpu": "500m"}}],
            },
            {
                "queue": "d",
                "arrivals": {"regular": {"every": "1h"}},
                "jobs": [{"duration": "1h", "requests": {"cpu": 1}}],
            },
        ],
    },
    {
        "resourceFlavor": {"name": "rf"},
        "cohorts": [
            {
                "className": "cohort",
                "count": 2,
                "queuesSets": [
                    {
                        "className": "cq",
                        "count": 2,
                        "nominalQuota": 20,
                        "borrowingLimit": 100,
                        "reclaimWithinCohort": "Any",
                        "withinClusterQueue": "LowerPriority",
                        "workloadsSets": [
                            {
                                "count": 5,
                                "creationIntervalMs": 100,
                                "workloads": [
                                    {
                                        "className": "small",
                                        "runtimeMs": 200,
                                        "priority": 50,
                                        "request": 1,
                                        "podCount": 2,
                                    },
                                    {"className": "large", "runtimeMs": 1000, "priority": 200, "request": 20},
                                ],
                            }
                        ],
                    }
                ],
            }
        ],
    },
)
