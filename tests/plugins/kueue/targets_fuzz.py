"""Random cases of `kueue/targets` with cohorts at least three levels deep, nearly full and often tied."""

from __future__ import annotations

from random import Random
from typing import Any

from kueue_fuzz import preemption_policies
from kueue_worlds import Manifest, Quota, flavor, manifest, queue, quota, resource_group

_Cell = tuple[str, str]
_DAY = "2025-01-01T"


def case(seed: int, holders: int, strategies: str) -> dict[str, Any]:
    """A case with so many holders, and strategies of `STRATEGIES`."""
    random = Random(seed)
    flavors = ["f0", "f1"][: random.choice((1, 1, 2))]
    resources = ["cpu", "gpu"][: random.choice((1, 1, 2))]
    cells = [(name, resource) for name in flavors for resource in resources]
    # Where all amounts are alike, shares are often equal; where they are odd, doubles are.
    sizes = random.choice(((1000,), (1000, 2000), (333, 1000, 1999, 2718)))
    cohorts = [_cohort(random, number, flavors, resources) for number in range(random.choice((3, 4, 5, 7)))]
    names = [each["metadata"]["name"] for each in cohorts]
    queues = [
        _queue(random, f"q{number}", random.choice(names), flavors, resources)
        for number in range(random.randint(2, 7))
    ]
    owners = [each["metadata"]["name"] for each in queues]
    own, *others = random.sample(owners, len(owners))
    held = _holders(random, holders, own, others, _room([*cohorts, *queues], cells), sizes)
    asked = random.sample(cells, random.randint(1, len(cells)))
    requests: dict[str, dict[str, int]] = {}
    for name, resource in asked:
        requests.setdefault(name, {})[resource] = random.choice(sizes) * random.randint(1, 3)
    need = random.sample(asked, random.randint(1, len(asked)))
    gates: dict[str, bool] = {}
    if random.random() < 0.3:
        gates["FairSharingPreemptWithinNominal"] = False
    if random.random() < 0.2:
        gates["PrioritySortingWithinCohort"] = False
    return {
        "id": f"fuzz-{seed}",
        "config": {"featureGates": gates, "fairSharing": {"preemptionStrategies": strategies.split(",")}},
        "objects": [*(flavor(name) for name in flavors), *cohorts, *queues, *held],
        "given": {
            "clusterQueue": own,
            "workload": _workload("incoming", random.choice((0, 1, 2, 2)), _time(random), "in"),
            "requests": requests,
            "assignment": {
                "podSets": [
                    {
                        "name": f"{name}-{resource}",
                        "flavors": {
                            resource: {"name": name, "mode": "Preempt" if (name, resource) in need else "Fit"}
                        },
                    }
                    for name, resource in asked
                ]
            },
        },
    }


def _weight(random: Random) -> dict[str, str]:
    return {"weight": random.choice(("1", "1", "1", "0", "300m", "3", "7"))}


def _quotas(
    random: Random, flavors: list[str], resources: list[str], *, most: int, limits: bool
) -> list[Manifest]:
    def one() -> Quota:
        nominal = random.choice((0, random.randint(1, most)))
        return quota(
            nominal,
            borrow=random.randint(0, 2 * most) if limits and random.random() < 0.15 else None,
            lend=random.randint(0, nominal) if limits and random.random() < 0.2 else None,
        )

    # Resources are counted in thousandths of these, so that gpus are as fine as cores.
    def scaled(found: Quota, resource: str) -> Quota:
        assert isinstance(found, dict)
        return found if resource == "cpu" else {name: 1000 * int(value) for name, value in found.items()}

    return [resource_group({name: {each: scaled(one(), each) for each in resources} for name in flavors})]


def _cohort(random: Random, number: int, flavors: list[str], resources: list[str]) -> Manifest:
    """The first three hang below each other, the others anywhere."""
    parent = "" if not number else f"c{number - 1 if number < 3 else random.randrange(number)}"
    spec: dict[str, Any] = {"parentName": parent} if parent else {}
    if random.random() < 0.5:
        spec["resourceGroups"] = _quotas(random, flavors, resources, most=4, limits=bool(parent))
    return manifest("Cohort", f"c{number}", fairSharing=_weight(random), **spec)


def _queue(random: Random, name: str, cohort: str, flavors: list[str], resources: list[str]) -> Manifest:
    preemption = preemption_policies(random, threshold=1)
    return queue(
        name,
        cohort=cohort,
        preemption=preemption,
        fairSharing=_weight(random),
        resourceGroups=_quotas(random, flavors, resources, most=6, limits=True),
        cpu=0,
        **({"stopPolicy": "Hold"} if random.random() < 0.05 else {}),
    )


def _time(random: Random) -> str:
    return f"{_DAY}00:00:{random.randint(0, 5):02}Z"


def _workload(name: str, priority: int, created: str, uid: str) -> Manifest:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": uid, "creationTimestamp": created},
        "spec": {
            "priority": priority,
            "queueName": "any",
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}],
        },
    }


def _room(nodes: list[Manifest], cells: list[_Cell]) -> dict[_Cell, int]:
    """What there is of each flavor-resource, in thousandths of a core or of what stands for one."""
    room = dict.fromkeys(cells, 0)
    for node in nodes:
        for group in node["spec"].get("resourceGroups", ()):
            for name in group["flavors"]:
                for each in name["resources"]:
                    scale = 1000 if each["name"] == "cpu" else 1
                    room[name["name"], each["name"]] += scale * each["nominalQuota"]
    return room


def _holders(
    random: Random, number: int, own: str, others: list[str], room: dict[_Cell, int], sizes: tuple[int, ...]
) -> list[Manifest]:
    """At most so many, until there is hardly any room; a few queues have most of them."""
    held: list[Manifest] = []
    greedy = random.sample(others, min(len(others), 2))
    for at in range(number):
        usage = {
            cell: random.choice(sizes) for cell in random.sample(list(room), random.randint(1, len(room)))
        }
        if all(room[cell] >= amount for cell, amount in usage.items()):
            for cell, amount in usage.items():
                room[cell] -= amount
            owner = random.choice((own, random.choice(others), *greedy))
            held.append(_holder(random, f"w{at:02}", owner, usage))
    return held


def _holder(random: Random, name: str, owner: str, usage: dict[_Cell, int]) -> Manifest:
    """A pod set for each flavor-resource."""
    found = _workload(
        name, random.choice((0, 0, 1, 2)), _time(random), f"uid-{random.randint(0, 999):03}-{name}"
    )
    found["spec"]["podSets"] = [
        {**found["spec"]["podSets"][0], "name": f"{flavor}-{resource}"} for flavor, resource in usage
    ]
    conditions = [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""}]
    if random.random() < 0.15:
        conditions.append({"type": "Evicted", "status": "True", "reason": "Preempted", "message": ""})
    found["status"] = {
        "admission": {
            "clusterQueue": owner,
            "podSetAssignments": [
                {
                    "name": f"{flavor}-{resource}",
                    "count": 1,
                    "flavors": {resource: flavor},
                    "resourceUsage": {resource: f"{value}m" if resource == "cpu" else value},
                }
                for (flavor, resource), value in usage.items()
            ],
        },
        "conditions": [{**each, "lastTransitionTime": _time(random)} for each in conditions],
    }
    return found
