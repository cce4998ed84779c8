"""Reads running pods, disruption budgets, and the configuration of kube-scheduler."""

from __future__ import annotations

from functools import partial

from harness.cluster.draft import Draft
from harness.cluster.kinds.disruption import read_disruption_budget
from harness.cluster.kinds.pod_reading import read_pod
from harness.cluster.kinds.scheduler_configuration import read_scheduler_configuration
from harness.cluster.model import SYSTEM_PRIORITY_CLASSES
from harness.cluster.yaml.fields import Fields


def read_running_pod(fields: Fields, draft: Draft) -> None:
    """Read a Pod. A Pod that has ended uses no resources, but counts for its Workload if it succeeded."""
    pod = read_pod(fields)
    if pod.ended:
        if fields.child("status").raw("phase") == "Succeeded":
            draft.succeeded.append(pod)
        return
    draft.pods.add((pod.namespace, pod.name), pod, fields)


def read_budget(fields: Fields, draft: Draft) -> None:
    """Read a PodDisruptionBudget."""
    budget = read_disruption_budget(fields)
    draft.disruption_budgets.add((budget.namespace, budget.name), budget, fields)


def read_configuration(fields: Fields, draft: Draft) -> None:
    """Read a KubeSchedulerConfiguration. A second KubeSchedulerConfiguration is a fault."""
    warn = partial(draft.warnings.add, "KubeSchedulerConfiguration", "")
    draft.schedulers.add("", read_scheduler_configuration(fields, warn), fields)


def check_scheduling(draft: Draft) -> None:
    """Check the rules between pods and other objects."""
    for key, pod in draft.pods.items():
        if (
            pod.priority is None
            and pod.priority_class
            and pod.priority_class not in draft.priority_classes
            and pod.priority_class not in SYSTEM_PRIORITY_CLASSES
        ):
            what = f"there is no PriorityClass {pod.priority_class!r}; add its manifest, or set spec.priority"
            draft.pods.fields(key).fault("spec.priorityClassName", what)
        if pod.node and pod.node not in draft.nodes:
            what = f"runs on node {pod.node}, which no manifest describes"
            draft.warnings.add("Pod", f"{pod.namespace}/{pod.name}", what)
    for budget in draft.disruption_budgets.values():
        if not budget.selector:
            what = "has no selector or an empty one, so no preemption takes it into account"
            draft.warnings.add("PodDisruptionBudget", f"{budget.namespace}/{budget.name}", what)
