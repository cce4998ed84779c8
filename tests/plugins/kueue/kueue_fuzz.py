"""Random small worlds of Kueue: a few trees of cohorts, contended by jobs that are often alike.

Worlds are made from a seed. The properties that use them run a few by default; KUEUE_FUZZ=50 runs fifty
times as many, from other seeds each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, NamedTuple

from kueue_worlds import (
    Jobs,
    Manifest,
    Quota,
    configuration,
    flavor,
    local_queue,
    manifest,
    queue,
    quota,
    resource_group,
)
from more_examples import examples, times

from harness import PodSet
from harness.base.pod_set import SliceLayer, TopologyRequest
from harness.base.units import SECOND
from harness.cluster.kinds.kueue_gates import why_refused
from harness.cluster.kinds.kueue_releases import RELEASES
from harness.cluster.model import frozen

TIMES = times("KUEUE_FUZZ")

WITHIN = ("Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority")
RECLAIM = ("Never", "LowerPriority", "Any", "Any")
_HOST = "kubernetes.io/hostname"
_NAMESPACES = ("default", "one", "two")
fuzz = partial(examples, variable="KUEUE_FUZZ")
STRATEGIES = (
    "LessThanOrEqualToFinalShare",
    "LessThanInitialShare",
    "LessThanOrEqualToFinalShare,LessThanInitialShare",
)


_OF_RELEASES = (
    "FlavorFungibility=false",
    "FlavorFungibilityImplicitPreferenceDefault=true",
    "HierarchicalCohorts=false",
    "LendingLimit=false",
    "SchedulerTimestampPreemptionBuffer=true",
    "SchedulingEquivalenceHashing=true",
)
"""Gates that some releases let one set."""


class World(NamedTuple):
    """Manifests, what arrives there, and the plugin with its options."""

    manifests: list[Manifest]
    jobs: Jobs
    plugin: str
    options: dict[str, str]


def world(seed: int, jobs: int, *, nodes: bool = False) -> World:
    """A world with so many jobs, with or without nodes."""
    random = Random(seed)
    flavors = [f"f{number}" for number in range(random.choice((1, 1, 1, 2, 3)))]
    groups = [({name: ["cpu", "gpu"] for name in flavors})]
    if random.random() < 0.4:
        groups = [{name: ["cpu"] for name in flavors}, {"g0": ["gpu"]}]
    elif random.random() < 0.5:
        groups = [{name: ["cpu"] for name in flavors}]
    names = [name for group in groups for name in group]
    tainted = random.choice(names) if random.random() < 0.2 else ""
    manifests = [_flavor(name, tainted=name == tainted) for name in names]
    cohorts = _cohorts(random, groups)
    manifests += cohorts
    queues = [f"q{number}" for number in range(random.randint(2, 6))]
    manifests += [
        _queue(random, name, groups, [each["metadata"]["name"] for each in cohorts]) for name in queues
    ]
    if nodes:
        manifests += [_node(random, number, names) for number in range(random.randint(2, 4))]
    gpus = any("gpu" in resources for group in groups for resources in group.values())
    plugin = random.choice(("kueue-classic", "fairsharing"))
    options = {"evictionLatency": random.choice(("0s", "1s", "1s", "7s"))}
    if plugin == "fairsharing":
        options["preemptionStrategies"] = random.choice(STRATEGIES)
    options["featureGates"] = ",".join(_gates(random))
    return World(manifests, _jobs(random, jobs, queues, names, gpus), plugin, options)


def alike(seed: int) -> World:
    """A world in overload whose queues are of one or two kinds, so that many heads come to the same."""
    random = Random(seed)
    most = random.choice((1, 2, 3))
    cohorts = random.choice((["top"], ["top"], ["left", "right"], ["left", "right", "top"]))
    quotas = (quota(0), quota(1), quota(1), quota(2, lend=1), quota(1, borrow=3))
    kinds = [
        {
            "groups": [{"f0": {"cpu": random.choice(quotas)}}],
            "preemption": preemption_policies(random, threshold=2),
            "fairSharing": _weight(random),
        }
        for _ in range(random.choice((1, 1, 2)))
    ]
    manifests = [flavor("f0")]
    manifests += [manifest("Cohort", name, parentName="top") for name in cohorts if name != "top"]
    queues = [f"q{number}" for number in range(random.randint(6, 14))]
    manifests += [
        queue(name, cohort=cohorts[at % len(cohorts)], **random.choice(kinds))
        for at, name in enumerate(queues)
    ]
    jobs, rate = Jobs(), random.choice((3, 8, 20))
    for number in range(random.randint(20, 60)):
        jobs.add(
            f"j{number:02}",
            random.choice(queues),
            random.randint(1, most),
            at=number // rate,
            seconds=random.choice((20, 50)),
            priority=random.choice((0, 0, 0, 1)),
            grace=random.choice((0, 3)),
        )
    plugin = random.choice(("kueue-classic", "fairsharing", "fairsharing"))
    options = {"evictionLatency": "1s", "featureGates": ",".join(_gates(random))}
    if plugin == "fairsharing":
        options["preemptionStrategies"] = random.choice(STRATEGIES)
    return World(manifests, jobs, plugin, options)


def contested(seed: int) -> World:
    """Many equal queues that reclaim from each other, so that ranks often decide between equal shares."""
    random = Random(seed)
    cohorts = random.choice((["top"], ["left", "right"], ["left", "right", "middle"]))
    manifests = [flavor("f0")]
    manifests += [manifest("Cohort", name, parentName="top") for name in cohorts if name != "top"]
    queues = [f"q{number:02}" for number in range(random.randint(8, 20))]
    policies = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    groups = [{"f0": {"cpu": quota(1)}}]
    manifests += [
        queue(name, cohort=cohorts[at % len(cohorts)], groups=groups, preemption=policies)
        for at, name in enumerate(queues)
    ]
    jobs, rate = Jobs(), random.choice((3, 8, 20))
    for number in range(60):
        jobs.add(
            f"j{number:02}",
            random.choice(queues),
            random.randint(1, 3),
            at=number // rate,
            seconds=random.choice((20, 50)),
            priority=random.choice((0, 0, 1)),
            grace=random.choice((0, 3, 8)),
        )
    return World(manifests, jobs, "fairsharing", {"evictionLatency": "1s"})


def each_its_own(seed: int) -> World:
    """A world in overload where nearly every job asks for amounts of its own, in queues that get deep."""
    random = Random(seed)
    given = world(seed, random.randint(40, 140))
    manifests = list(given.manifests)
    if random.random() < 0.4:  # else searches that may find somebody hide what numbers tell
        for document in manifests:
            if document["kind"] == "ClusterQueue" and random.random() < 0.9:
                document["spec"]["preemption"] = {}
    if random.random() < 0.5:
        for document in manifests:
            if document["kind"] == "ClusterQueue":
                document["spec"]["queueingStrategy"] = "BestEffortFIFO"
    return _with_own_amounts(given._replace(manifests=manifests), random)


def each_its_own_below_cohorts(seed: int) -> World:
    """Queues of one or two kinds, some below cohorts, whose jobs ask for amounts of their own."""
    return _with_own_amounts(alike(seed), Random(seed))


def _with_own_amounts(given: World, random: Random) -> World:
    jobs = Jobs()
    for job, duration, *_ in next(given.jobs.chunks()):
        pod_sets = tuple(
            replace(each, requests=frozen(_own_amounts(random, each.requests))) for each in job.pod_sets
        )
        fields = {"at": job.submit / SECOND, "seconds": duration / SECOND, "priority": job.priority}
        jobs.add(job.id, job.queue, grace=job.grace_period / SECOND, pod_sets=pod_sets, **fields)
    return given._replace(jobs=jobs)


def crowded(seed: int) -> World:
    """A cohort of deep queues that preempt nobody, or hardly anybody, so that heads keep out one another."""
    random = Random(seed)
    most = random.choice((3000, 8000))
    limits = random.random() < 0.4
    resources = random.choice((["cpu"], ["cpu", "gpu"], ["cpu", "gpu", "memory"]))
    manifests = [flavor("f0")]
    queues = [f"q{number}" for number in range(random.randint(2, 4))]
    for name in queues:
        nominal = {each: random.choice((0, most, 2 * most)) for each in resources}
        quotas = {
            each: quota(
                f"{amount}m" if each == "cpu" else amount,
                borrow=f"{random.randint(0, most)}m" if each == "cpu" and limits else None,
                lend=random.randint(0, amount) if each == "gpu" and limits else None,
            )
            for each, amount in nominal.items()
        }
        preemption = preemption_policies(random, threshold=1) if random.random() < 0.15 else {}
        manifests.append(
            queue(
                name, cohort="c", groups=[{"f0": quotas}], preemption=preemption, fairSharing=_weight(random)
            )
        )
    jobs, rate = Jobs(), random.choice((2, 5, 15))
    for number in range(random.randint(40, 120)):
        requests = {each: random.randint(most // 10, most) for each in resources}
        jobs.add(
            f"j{number:03}",
            random.choice((*queues, queues[0], queues[0])),
            at=number // rate,
            seconds=random.choice((5, 20, random.randint(1, 60))),
            priority=random.choice((0, 0, 0, 0, 0, 1)),
            pod_sets=(PodSet("main", 1, 1, frozen(requests)),),
        )
    plugin = random.choice(("kueue-classic", "fairsharing"))
    options = {"featureGates": ",".join(_gates(random))}
    if plugin == "fairsharing":
        options["preemptionStrategies"] = random.choice(STRATEGIES)
    return World(manifests, jobs, plugin, options)


def _own_amounts(random: Random, requests: Mapping[str, int]) -> dict[str, int]:
    """Amounts of its own; now and then also of what no queue covers, so that it waits for ever."""
    uncovered = {"tpu": 1} if random.random() < 0.03 else {}
    return uncovered | {
        name: amount * random.randint(40, 180) // 100 if name == "cpu" else amount
        for name, amount in requests.items()
    }


def by_usage(given: World, seed: int) -> World:
    """The same world, where most queues order jobs by the usage of LocalQueues; those have samples often."""
    random = Random(seed)
    manifests: list[Manifest] = []
    for document in given.manifests:
        if document["kind"] == "ClusterQueue" and random.random() < 0.8:
            scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
            document = document | {"spec": document["spec"] | {"admissionScope": scope}}
            name = document["metadata"]["name"]
            for namespace in random.sample(_NAMESPACES, 2):
                consumed = {"cpu": f"{random.randint(0, 6)}"} if random.random() < 0.3 else None
                sharing = _weight(random)
                door = local_queue(name, name, namespace=namespace, consumed=consumed, fairSharing=sharing)
                manifests.append(door)
        manifests.append(document)
    settings = {
        "usageHalfLifeTime": random.choice(("0s", "4s", "30s", "30s", "1h")),
        "usageSamplingInterval": random.choice(("1s", "3s", "5s", "17s")),
        "resourceWeights": {"gpu": random.choice((0, 1, 5))},
    }
    manifests.append(configuration(admissionFairSharing=settings))
    return given._replace(
        manifests=manifests, jobs=_with(given.jobs, lambda: {"namespace": random.choice(_NAMESPACES)})
    )


def starting(given: World, seed: int) -> World:
    """The same world, where some pods take longer to be ready than Kueue waits for them."""
    random = Random(seed)
    strategy = {
        "backoffBaseSeconds": random.choice((1, 10)),
        "backoffLimitCount": 2,
        "timestamp": random.choice(("Eviction", "Creation")),
    }
    settings = {
        "timeout": random.choice(("5s", "20s")),
        "blockAdmission": random.random() < 0.5,
        "requeuingStrategy": strategy,
    }
    jobs = _with(given.jobs, lambda: {"startup": random.choice((0, 0, 1, 3, 8, 25))})
    return given._replace(manifests=[*given.manifests, configuration(waitForPodsReady=settings)], jobs=jobs)


def _with(jobs: Jobs, more: Callable[[], Mapping[str, Any]]) -> Jobs:
    found = Jobs()
    for job, duration, *_ in next(jobs.chunks()):
        fields = {"at": job.submit / SECOND, "seconds": duration / SECOND, "priority": job.priority}
        fields |= {"grace": job.grace_period / SECOND, "pod_sets": job.pod_sets}
        found.add(job.id, job.queue, **fields, **more())
    return found


def released(given: World, seed: int) -> World:
    """The same world under some release of Kueue, with some of the gates that it lets one set."""
    random = Random(seed)
    release = random.choice(RELEASES)
    unusual = [each for each in _OF_RELEASES if random.random() < 0.15]
    every = [each.partition("=") for each in (*given.options["featureGates"].split(","), *unusual) if each]
    gates = {name: value == "true" for name, _, value in every}
    taken = [
        f"{name}={str(on).lower()}" for name, on in gates.items() if not why_refused({name: on}, release)
    ]
    options = {**given.options, "kueueVersion": str(release), "featureGates": ",".join(taken)}
    return given._replace(options=options)


def previewed(given: World, seed: int) -> World:
    """The same world with a minimum run time, a rate limit of preemptions, or both.

    Both may name a ClusterQueue, but only one that is there from the beginning.
    """
    random = Random(seed)
    queues = [
        each["metadata"]["name"]
        for each in given.manifests
        if each["kind"] == "ClusterQueue" and not each["metadata"].get("annotations")
    ]
    if not queues:
        return given._replace(options={**given.options, "previewMinRunTime": "5s"})
    which = random.choice(("time", "rate", "both"))
    options = dict(given.options)
    if which != "rate":
        options["previewMinRunTime"] = random.choice(
            (
                "5s",
                "20s",
                f"{random.choice(queues)}=30s",
                "priority:1=15s",
                f"3s,{queues[0]}=10s,priority:2=1m",
            )
        )
    if which != "time":
        options["previewPreemptionRate"] = random.choice(
            ("1/10s", "2/30s", f"{random.choice(queues)}=1/40s", f"3/10s,{queues[0]}=1/20s")
        )
    return given._replace(options=options)


def changing(given: World, seed: int) -> World:
    """The same world, whose queues and cohorts change up to ten times: all that a patch can say of them."""
    random = Random(seed)
    those = [each for each in given.manifests if each["kind"] in ("ClusterQueue", "Cohort", "LocalQueue")]
    named = [(each["kind"], each["metadata"]["name"]) for each in those]
    times = sorted(random.randint(1, 120) for _ in range(random.randint(1, 10)))
    if random.random() < 0.3:  # several at one instant, and arrivals and ends of whole seconds at the same
        times = [each // 20 * 20 + 1 for each in times]
    patches = [_patch(random, random.choice(those), named, at) for at in times]
    manifests = list(given.manifests)
    for document in manifests:
        if document["kind"] == "ClusterQueue" and random.random() < 0.1:
            document["metadata"]["annotations"] = {"harness/from": f"{random.randint(1, 40)}s"}
            patches = [each for each in patches if each["metadata"]["name"] != document["metadata"]["name"]]
    return given._replace(manifests=[*manifests, *patches])


def _patch(random: Random, document: Manifest, named: Sequence[tuple[str, str]], at: int) -> Manifest:
    """A patch that holds from a second on, often until a later one."""
    annotations = {"harness/from": f"{at}s"}
    if random.random() < 0.5:
        annotations["harness/until"] = f"{at + random.randint(1, 60)}s"
    found = {name: document[name] for name in ("apiVersion", "kind")}
    found["metadata"] = document["metadata"] | {"annotations": annotations}
    kind, spec = document["kind"], document["spec"]
    if kind == "LocalQueue":
        if random.random() < 0.3:
            queues = [name for kind, name in named if kind == "ClusterQueue"]
            return found | {"spec": {"clusterQueue": random.choice(queues)}}
        return found | {"spec": {"stopPolicy": random.choice(("Hold", "HoldAndDrain", "None"))}}
    if kind == "ClusterQueue" and random.random() < 0.4:
        return found | {"spec": _other_settings(random, spec)}
    cohorts = [name for kind, name in named if kind == "Cohort"]
    what = random.choice(("quota", "quota", "quota", "weight", "move", "policy", "stop", "stop", "delete"))
    limited = "cohortName" in spec or "parentName" in spec  # limits need somebody to lend to
    groups = [
        {
            "coveredResources": group["coveredResources"],
            "flavors": [
                {
                    "name": each["name"],
                    "resources": [
                        {"name": resource["name"], **_other_quota(random, limited=limited)}
                        for resource in each["resources"]
                    ],
                }
                for each in group["flavors"]
            ],
        }
        for group in spec.get("resourceGroups", ())
    ]
    if what == "delete" and kind == "ClusterQueue" and random.random() < 0.5:
        return found | {"$patch": "delete"}
    if what == "move" and cohorts:
        if kind == "ClusterQueue":
            return found | {"spec": {"cohortName": random.choice((*cohorts, "other"))}}
        above = cohorts[: cohorts.index(document["metadata"]["name"])]
        return found | {
            "spec": {"parentName": random.choice(above)} if above else {"fairSharing": _weight(random)}
        }
    if what == "stop" and kind == "ClusterQueue":
        return found | {"spec": {"stopPolicy": random.choice(("Hold", "HoldAndDrain", "HoldAndDrain"))}}
    if what == "policy" and kind == "ClusterQueue":
        policies = {"$patch": "replace", **preemption_policies(random, threshold=2)}
        return found | {"spec": {"preemption": policies}}
    if what == "weight" or not groups:
        return found | {"spec": {"fairSharing": _weight(random)}}
    return found | {"spec": {"resourceGroups": groups}}


def _other_settings(random: Random, spec: Manifest) -> Manifest:
    """Another part of the manifest of a ClusterQueue."""
    what = random.choice(("flavorFungibility", "queueingStrategy", "namespaceSelector", "flavors"))
    if what == "flavorFungibility":
        return {"flavorFungibility": {"$patch": "replace", **_fungibility(random)}}
    if what == "queueingStrategy":
        return {"queueingStrategy": random.choice(("BestEffortFIFO", "StrictFIFO"))}
    if what == "namespaceSelector":
        labels = {"kubernetes.io/metadata.name": random.choice(("default", "default", "other"))}
        return {"namespaceSelector": {"matchLabels": labels}}
    groups = [
        {
            "coveredResources": group["coveredResources"],
            "flavors": random.sample(group["flavors"], random.randint(1, len(group["flavors"]))),
        }
        for group in spec.get("resourceGroups", ())
    ]
    return {"resourceGroups": [{"$patch": "replace"}, *groups]}


def _other_quota(random: Random, *, limited: bool) -> dict[str, int | None]:
    """A nominal quota, with limits now and then; None takes one away."""
    nominal = random.choice((0, 1, 2, 4, 7))
    lends = random.randint(0, nominal) if limited and random.random() < 0.3 else None
    borrows = random.randint(0, 7) if limited and random.random() < 0.2 else None
    return {"nominalQuota": nominal, "lendingLimit": lends, "borrowingLimit": borrows}


def failing(given: World, seed: int) -> World:
    """The same world, whose nodes fail, return, are cordoned, tainted, resized and relabelled."""
    random = Random(seed)
    nodes = [each for each in given.manifests if each["kind"] == "Node"]
    times = sorted(random.randint(1, 120) for _ in range(random.randint(1, 9)))
    if random.random() < 0.3:
        times = [each // 20 * 20 + 1 for each in times]
    patches = [_node_patch(random, random.choice(nodes)["metadata"]["name"], at) for at in times]
    gates = [
        "TASFailedNodeReplacementFailFast",
        "TASReplaceNodeOnPodTermination",
        "TASReplaceNodeOnNodeTaints",
    ]
    off = [f"{each}=false" for each in gates if random.random() < 0.15]
    options = {**given.options, "featureGates": ",".join(off)} if off else given.options
    return given._replace(manifests=[*given.manifests, *patches], options=options)


def _node_patch(random: Random, name: str, at: int) -> Manifest:
    annotations = {"harness/from": f"{at}s"}
    if random.random() < 0.6:
        annotations["harness/until"] = f"{at + random.choice((1, 1, 2, 5, 40))}s"
    metadata: Manifest = {"name": name, "annotations": annotations}
    found: Manifest = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    what = random.choice(("delete", "delete", "taint", "taint", "cordon", "down", "resize", "label"))
    if what == "delete":
        return found | {"$patch": "delete"}
    if what == "taint":
        effect = random.choice(("NoExecute", "NoExecute", "NoSchedule"))
        return found | {"spec": {"taints": [{"key": "broken", "effect": effect}]}}
    if what == "cordon":
        return found | {"spec": {"unschedulable": True}}
    if what == "resize":
        return found | {"status": {"allocatable": {"cpu": random.randint(0, 9)}}}
    if what == "label":
        metadata["labels"] = {"zone": random.choice("abc")}
        return found
    found["status"] = {"conditions": [{"type": "Ready", "status": "False"}]}
    if random.random() < 0.7:
        found["spec"] = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}
    return found


def placed(given: World, seed: int) -> World:
    """The same world with nodes, where most flavors have a topology and most jobs ask for a place in it."""
    random = Random(seed)
    levels = random.choice((("zone", _HOST), ("zone", _HOST), ("zone",)))
    manifests: list[Manifest] = [manifest("Topology", "t", levels=[{"nodeLabel": each} for each in levels])]
    for document in given.manifests:
        if document["kind"] == "ResourceFlavor" and random.random() < 0.8:
            document = document | {"spec": document["spec"] | {"topologyName": "t"}}
        elif document["kind"] == "Node":
            name = document["metadata"]["name"]
            labels = document["metadata"]["labels"] | {_HOST: name}
            document = document | {"metadata": document["metadata"] | {"labels": labels}}
        manifests.append(document)
    shapes: dict[tuple[PodSet, ...], tuple[PodSet, ...]] = {}
    jobs = Jobs()
    for job, duration, *_ in next(given.jobs.chunks()):
        if job.pod_sets not in shapes:
            group = "g" if len(job.pod_sets) > 1 and random.random() < 0.3 else ""
            shapes[job.pod_sets] = tuple(
                replace(each, topology=_request(random, levels, group)) for each in job.pod_sets
            )
        fields = {"at": job.submit / SECOND, "seconds": duration / SECOND, "priority": job.priority}
        fields |= {"grace": job.grace_period / SECOND, "pod_sets": shapes[job.pod_sets]}
        jobs.add(job.id, job.queue, **fields)
    return given._replace(manifests=manifests, jobs=jobs)


def _request(random: Random, levels: Sequence[str], group: str) -> TopologyRequest | None:
    """What a pod set asks of a topology."""
    kind = random.choice(("", "", "required", "required", "preferred", "unconstrained", "slices"))
    if kind == "unconstrained":
        return TopologyRequest(unconstrained=True, group=group)
    if kind == "slices":
        return TopologyRequest(slices=(SliceLayer(random.choice(levels), 2),), group=group)
    named = {kind: random.choice(levels)} if kind else {}
    return TopologyRequest(**named, group=group)


def _flavor(name: str, *, tainted: bool) -> Manifest:
    taints = [{"key": "spot", "value": "true", "effect": "NoSchedule"}] if tainted else []
    return flavor(name, nodeLabels={"kind": name}, nodeTaints=taints)


def _node(random: Random, number: int, flavors: list[str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"n{number}",
            "labels": {"kind": flavors[number % len(flavors)], "zone": random.choice("ab")},
        },
        "status": {"allocatable": {"cpu": random.randint(2, 9), "gpu": 4, "memory": "64Gi", "pods": 110}},
    }


def _quotas(
    random: Random, groups: list[dict[str, list[str]]], *, limits: bool, most: int
) -> list[Mapping[str, Mapping[str, Quota]]]:
    def one() -> Quota:
        nominal = random.choice((0, 1, random.randint(1, most), random.randint(1, most)))
        return quota(
            nominal,
            borrow=random.randint(0, most) if limits and random.random() < 0.2 else None,
            lend=random.randint(0, nominal) if limits and random.random() < 0.2 else None,
        )

    return [
        {name: {each: one() for each in resources} for name, resources in group.items()} for group in groups
    ]


def _weight(random: Random) -> dict[str, str]:
    return {"weight": random.choice(("1", "1", "1", "0", "2", "500m", "3"))}


def _cohorts(random: Random, groups: list[dict[str, list[str]]]) -> list[Manifest]:
    """From none to six cohorts, each below one that comes before it or a root."""
    found: list[Manifest] = []
    for number in range(random.choice((0, 1, 1, 1, 3, 4, 6))):
        parent = f"c{random.randrange(number)}" if number and random.random() < 0.9 else ""
        spec: dict[str, Any] = {"parentName": parent} if parent else {}
        if random.random() < 0.4:
            quotas = _quotas(random, groups, limits=bool(parent), most=6)
            spec["resourceGroups"] = [resource_group(each) for each in quotas]
        found.append(manifest("Cohort", f"c{number}", fairSharing=_weight(random), **spec))
    return found


def preemption_policies(random: Random, *, threshold: int) -> dict[str, Any]:
    """The preemption of a ClusterQueue; priorities above the threshold may be safe from who borrows."""
    preemption: dict[str, Any] = {
        "withinClusterQueue": random.choice(WITHIN),
        "reclaimWithinCohort": random.choice(RECLAIM),
    }
    if preemption["reclaimWithinCohort"] != "Never" and random.random() < 0.4:
        preemption["borrowWithinCohort"] = {"policy": "LowerPriority"}
        if random.random() < 0.5:
            preemption["borrowWithinCohort"]["maxPriorityThreshold"] = random.randint(0, threshold)
    return preemption


def _queue(random: Random, name: str, groups: list[dict[str, list[str]]], cohorts: list[str]) -> Manifest:
    cohort = random.choice(cohorts) if cohorts and random.random() < 0.95 else ""
    preemption = preemption_policies(random, threshold=2)
    more: dict[str, Any] = {"stopPolicy": "Hold"} if random.random() < 0.03 else {}
    return queue(
        name,
        cohort=cohort,
        groups=_quotas(random, groups, limits=bool(cohort), most=6),
        preemption=preemption,
        flavorFungibility=_fungibility(random),
        queueingStrategy=random.choice(("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO")),
        fairSharing=_weight(random),
        **more,
    )


def _fungibility(random: Random) -> dict[str, str]:
    fungibility = {
        "whenCanBorrow": random.choice(("MayStopSearch", "TryNextFlavor")),
        "whenCanPreempt": random.choice(("MayStopSearch", "TryNextFlavor")),
    }
    if set(fungibility.values()) == {"TryNextFlavor"} and random.random() < 0.6:
        fungibility["preference"] = random.choice(("BorrowingOverPreemption", "PreemptionOverBorrowing"))
    return fungibility


def _gates(random: Random) -> list[str]:
    """Now and then a gate that is not at its default."""
    unusual = (
        "FairSharingPreemptWithinNominal=false",
        "FairSharingPrioritizeNonBorrowing=false",
        "FlavorFungibilityPreserveScanProgress=false",
        "PartialAdmission=false",
        "PrioritizePreemptorWorkloads=true",
        "PrioritySortingWithinCohort=false",
        "RecomputeAssignmentUponPreemptionTargetsOverlap=false",
        "SchedulingEquivalenceHashing=false",
    )
    return [each for each in unusual if random.random() < 0.05]


def _jobs(random: Random, number: int, queues: list[str], flavors: list[str], gpus: bool) -> Jobs:
    partial = 0.6 if random.random() < 0.3 else 0.0
    shapes = [_pod_sets(random, flavors, partial, gpus=gpus) for _ in range(random.randint(1, 3))]
    priorities = random.choice(((0,), (0, 1), (0, 1, 2, 3), (0, 1, 2, 3)))
    busy = random.sample(queues, random.randint(2, len(queues)))
    span = random.choice((10, 40, 80))
    jobs = Jobs()
    for at, name in sorted(
        (span // 5 * random.choice((0, random.randint(0, 5))), f"j{each:02}") for each in range(number)
    ):
        jobs.add(
            name,
            random.choice(busy[: 1 + len(busy) * 2 * at // span]),  # the first ones borrow before others come
            at=at,
            seconds=random.choice((20, 50, random.randint(1, 120))),
            priority=max(random.choice(priorities), at and random.choice(priorities)),
            grace=random.choice((0, 0, 3)),
            pod_sets=random.choice(shapes),
        )
    return jobs


def _pod_sets(random: Random, flavors: list[str], partial: float, *, gpus: bool) -> tuple[PodSet, ...]:
    return tuple(
        _pod_set(random, f"p{each}", flavors, partial, gpus=gpus)
        for each in range(random.choice((1, 1, 1, 2)))
    )


def _pod_set(random: Random, name: str, flavors: list[str], partial: float, *, gpus: bool) -> PodSet:
    count = random.choice((1, 1, 1, 2, 3))
    requests = {"cpu": 1000 * random.choice((1, 1, 2, 3))}
    if gpus and random.random() < 0.4:
        requests["gpu"] = random.choice((0, 1, 1, 2))
    return PodSet(
        name,
        count,
        random.randint(1, count) if random.random() < partial else count,
        frozen(requests),
        node_selector=frozen({"kind": random.choice(flavors)} if random.random() < 0.1 else {}),
        tolerations='[{"key": "spot", "operator": "Exists"}]' if random.random() < 0.4 else "",
    )
