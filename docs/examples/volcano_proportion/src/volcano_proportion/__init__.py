"""An approximation of Volcano's `proportion` plugin; README.md says what it leaves out."""

from collections.abc import Mapping
from typing import Any

from harness import Cluster, InputError, Never, Policy, PolicySpec, Possible, Register, View, hookimpl
from harness.models.kube.policy import PodPolicy
from harness.models.manifests import Kind, KindSpec
from volcano_proportion.conversion import write_queues
from volcano_proportion.queue import KIND, KNOBS, QUEUE_FIELDS, read_queue
from volcano_proportion.scheduler import ProportionScheduler


@hookimpl
def harness_register_kinds(register: Register[KindSpec]) -> None:
    """Register Volcano's Queue."""
    register(KindSpec(KIND, Kind(("v1beta1",), read_queue, QUEUE_FIELDS, None, KNOBS, write_queues)))


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `volcano-proportion`."""
    text = "Volcano's proportion, approximately: queues deserve nodes by weight, and reclaim; gangs"
    register(PolicySpec("volcano-proportion", proportion, help=text, never=without_queue))


def proportion(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Make the policy; raise an `InputError` if the cluster has no nodes or no Queue."""
    return PodPolicy(cluster, ProportionScheduler(cluster), never=without_queue(cluster, options))


def without_queue(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Return a function that rejects jobs whose Queue does not exist."""
    queues = cluster.custom_resources.get(KIND, {})
    if not queues:
        raise InputError("volcano-proportion shares nodes between Queues, and the cluster has none")
    return lambda job: None if job.queue in queues else Never(f"queue {job.queue}", f"no Queue {job.queue}")
