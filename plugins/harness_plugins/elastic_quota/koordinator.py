"""Implements Koordinator's elastic quotas, which form a tree.

The runtime of a quota is the amount that it may use at present. It depends on the requests to all quotas. A
pod is admitted within the runtime of its quota, and preempts less important pods of its own quota. Quota that
was lent is taken back by `revoke.py`, not by preemption. Pods without a quota do not preempt, as with
Koordinator's `disableDefaultQuotaPreemption`.
"""

from __future__ import annotations

from typing import final

from harness_plugins.elastic_quota.dry_run import Exceeded
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Rules


@final
class KoordinatorRules(Rules):
    """The rules of Koordinator.

    Args:
        usage: the quotas, with runtimes.
        quirks: whether dry runs reproduce behavior that is found only in Koordinator's code. See `exceeded`.
            If not, a pod that must not be preempted waits if it would exceed the `min` of its quota, because
            preemption does not help it.
    """

    sorts_victims = False

    def __init__(self, usage: QuotaUsage, *, quirks: bool = True) -> None:
        super().__init__(usage)
        self.counts_twice = quirks  # Koordinator's code checks the quota again, see `QuotaBound`
        self.keeps_firm = not quirks

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns the exceeded limits that count in a dry run.

        With `quirks=on`, a dry run checks the quota only when it puts victims back. It then compares only the
        runtime of the requested resources. Admission can therefore refuse the pod after its victims are gone.
        If only the `max` of sibling quotas names a resource, the runtime of this quota is 0 for the resource.
        A pod that requests it always exceeds this runtime, although admission ignores the resource.

        With `quirks=off`, all limits of admission count, also after the removal of all potential victims.
        """
        if self.keeps_firm:
            return super().exceeded(request)
        tree, quota, own = self.usage.tree, request.quota, request.own
        found = [each for each in request.excesses(tree) if each[0] is quota and each[1] in own]
        unnamed = tree.runtimes.unnamed(quota.name) if tree.runtimes is not None and quota is not None else ()
        if unnamed:
            asked = request.pod.template.spec.requests.items()
            found += [(quota, name, amount) for name, amount in asked if amount and name in unnamed]
        return Exceeded(found, ())
