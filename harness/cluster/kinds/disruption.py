"""Models PodDisruptionBudgets, which limit how many pods of an application can be down at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.base.values import Value, fixed
from harness.cluster.kinds.selectors import LabelSelector, read_selector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.cluster.draft import Draft
    from harness.cluster.yaml.fields import Fields


@fixed()
class Share(Value):
    """A number of pods, or a percentage of the expected pods."""

    value: int
    percent: bool = False

    def of(self, expected: int) -> int:
        """Returns the share as a number of pods. A percentage of `expected` pods is rounded up."""
        return -(-self.value * expected // 100) if self.percent else self.value


@fixed()
class PodDisruptionBudget(Value):
    """A PodDisruptionBudget.

    Attributes:
        selector: selects pods of the namespace. None or an empty selector matches no pod in a preemption.
        min_available, max_unavailable: the limits of the budget. At most one of them is set.
        disruptions_allowed: the value in the status. A replay recomputes it from the pods.
        disrupted_pods: names of pods whose eviction has already been approved. These pods don't count. A
            replay ignores these names, because the disruption controller soon removes them.
    """

    name: str
    namespace: str
    selector: LabelSelector | None
    min_available: Share | None = None
    max_unavailable: Share | None = None
    disruptions_allowed: int = 0
    disrupted_pods: tuple[str, ...] = ()

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Returns True if a pod counts towards this budget. Pods without labels never count."""
        return bool(
            labels and self.selector and namespace == self.namespace and self.selector.matches(labels)
        )

    def allowed(self, expected: int, healthy: int) -> int:
        """Returns the number of disruptions that are currently allowed.

        `expected` is the number of existing pods that match, whether they are pending, bound or terminating.
        `healthy` is the number of matching pods that are bound and not terminating.
        """
        if self.min_available is not None:
            needed = self.min_available.of(expected)
        elif self.max_unavailable is not None:
            needed = max(0, expected - self.max_unavailable.of(expected))
        else:
            return 0  # without either field, the disruption controller allows nothing
        return max(0, healthy - needed)


def read_disruption_budget(fields: Fields, draft: Draft) -> None:
    """Read a PodDisruptionBudget."""
    metadata, spec, status = fields.child("metadata"), fields.child("spec"), fields.child("status")
    name = metadata.string("name", required=True)
    namespace = metadata.string("namespace", "default") or "default"
    selector = read_selector(spec.child("selector")) if "selector" in spec else None
    least, most = _read_share(spec, "minAvailable"), _read_share(spec, "maxUnavailable")
    if least is not None and most is not None:
        spec.fault("maxUnavailable", "cannot be given together with minAvailable")
    allowed = status.integer("disruptionsAllowed")
    disrupted = tuple(status.child("disruptedPods"))
    budget = PodDisruptionBudget(name, namespace, selector, least, most, allowed, disrupted)
    draft.disruption_budgets.add((namespace, name), budget, fields)


def check_disruption_budgets(draft: Draft) -> None:
    """Warn about budgets that select no pod."""
    for budget in draft.disruption_budgets.values():
        if not budget.selector:
            what = "has no selector or an empty one, so no preemption takes it into account"
            draft.warnings.add("PodDisruptionBudget", f"{budget.namespace}/{budget.name}", what)


def _read_share(fields: Fields, name: str) -> Share | None:
    """Returns a number of pods (an integer >= 0) or a percentage (as text)."""
    value = fields.raw(name)
    if value is None:
        return None
    if isinstance(value, str):
        number = value.removesuffix("%")
        if (
            value.endswith("%")
            and number.isascii()
            and number.isdigit()
            and len(number) <= 3
            and int(number) <= 100
        ):
            return Share(int(number), percent=True)
        fields.fault(name, f"{value!r} must be a whole number of pods, or 0% to 100%")
        return None
    return Share(fields.integer(name, least=0))
