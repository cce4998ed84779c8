"""Models default preemption, which decides whether a pod preempts, on which node, and which victims.

The functions have the same names as in kube-scheduler's `pkg/scheduler/framework/preemption` and
`plugins/defaultpreemption`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple, final

from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration
from harness.models.kube.cache import Cache
from harness.models.kube.placement.scheduling import Diagnosis
from harness.models.kube.placement.status import Code, Status
from harness.models.kube.placement.trial import NOTHING
from harness.models.kube.pod import PodInfo, Shape
from harness.models.kube.preemption._dry_runs import DryRuns, Enough
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.victims import Candidate, select_victims_on_node

NEVER_PREEMPTS = "not eligible due to preemptionPolicy=Never."
VICTIMS_LEAVING = "not eligible due to a terminating pod on the nominated node."

CRITERIA = (
    "fewest PDB violations", "lowest highest priority of victims", "lowest sum of victims' priorities",
    "fewest victims", "latest start of the most important victims", "lowest node name",
)  # fmt: skip
"""The criteria for choosing a node, in order. kube-scheduler lacks the last criterion and picks any node."""

_MOST_DRY_RUNS = 256

_key = attrgetter("key")


class Found(NamedTuple):
    """The result of the dry runs for a preemptor.

    Attributes:
        candidates: the nodes on which preemption would help, in the order of nodes.
        rejected: maps the position of another node to the reason why it is not a candidate.
        failed: whether there are no candidates, and a dry run ended with an error.
    """

    candidates: Sequence[Candidate]
    rejected: dict[int, Status]
    failed: bool


@final
class Preemption:
    """Finds and chooses candidates, and caches dry runs of nodes that have not changed."""

    def __init__(self, cache: Cache, budgets: Budgets, configuration: SchedulerConfiguration) -> None:
        self._cache = cache
        self._budgets = budgets
        self._percentage = configuration.min_candidate_nodes_percentage
        self._absolute = configuration.min_candidate_nodes_absolute
        self._dry_runs: dict[tuple[Shape, int], DryRuns] = {}

    def renew(self) -> None:
        """Drops all results that depend on nodes, because nodes or their order have changed."""
        self._dry_runs.clear()

    def pod_eligible_to_preempt_others(self, pod: PodInfo, diagnosis: Diagnosis) -> str | None:
        """Returns the reason why a pod cannot preempt now, or None if it can.

        A pod with a nominated node waits for the victims that are still terminating there, unless the node
        can never run the pod.
        """
        if not pod.preempts:
            return NEVER_PREEMPTS
        node = self._cache.by_name.get(pod.nominated) if pod.nominated else None
        if node is None or diagnosis.status(node).code is Code.UNRESOLVABLE:
            return None
        leaving = any(
            other.preempted and other.terminating and other.priority < pod.priority for other in node.pods
        )
        return VICTIMS_LEAVING if leaving else None

    def find_candidates(self, pod: PodInfo, diagnosis: Diagnosis, *, explain: bool = False) -> Found:
        """Performs dry runs on the nodes where preemption may help, until there are enough candidates.

        Args:
            pod: the preemptor.
            diagnosis: the reasons why the preemptor fits on no node.
            explain: whether to also return the reasons why nodes are not candidates.
        """
        one_by_one = explain or diagnosis.state is not NOTHING or bool(pod.template.shape.ports)
        if not (one_by_one or self._cache.has_lower(pod.priority)):
            return Found((), {}, failed=False)
        potential = diagnosis.potential
        wanted = min(len(potential), max(self._absolute, len(potential) * self._percentage // 100))
        if one_by_one:
            return self._dry_run_preemption(pod, diagnosis, potential, wanted)
        runs = self._runs_of(pod)
        candidates = runs.candidates(pod, diagnosis, potential, wanted)
        return Found(candidates, {}, failed=not candidates and runs.failed)

    def _dry_run_preemption(
        self, pod: PodInfo, diagnosis: Diagnosis, potential: Sequence[int], wanted: int
    ) -> Found:
        nodes, candidates = self._cache.nodes, Enough(wanted)
        rejected: dict[int, Status] = {}
        for position in potential:
            answer = select_victims_on_node(
                pod, nodes[position], diagnosis.state, self._budgets, self._cache.names
            )
            if isinstance(answer, Status):
                rejected[position] = answer
            elif candidates.add(answer):
                break
        failed = any(status.code is Code.ERROR for status in rejected.values())
        return Found(candidates.found, rejected, failed=failed and not candidates.found)

    def _runs_of(self, pod: PodInfo) -> DryRuns:
        key = (pod.template.shape, pod.priority)
        runs = self._dry_runs.pop(key, None)
        if runs is None:
            if len(self._dry_runs) >= _MOST_DRY_RUNS:
                del self._dry_runs[next(iter(self._dry_runs))]
            runs = DryRuns(self._cache, self._budgets)
        self._dry_runs[key] = runs  # the most recently used runs are last
        return runs

    def nominations_to_clear(self, pod: PodInfo, candidate: Candidate) -> list[PodInfo]:
        """Returns the less important pods that lose their nomination to the preemptor's node."""
        if all(victim.terminating for victim in candidate.victims):
            return []
        return [other for other in candidate.node.nominated if other.priority < pod.priority]


def pick_one_node_for_preemption(candidates: Sequence[Candidate]) -> Candidate:
    """Returns the best candidate by `CRITERIA`."""
    return min(candidates, key=_key)


def acceptable(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns the best candidates, which differ only in their names."""
    best = pick_one_node_for_preemption(candidates).key[:-1]
    return [candidate for candidate in candidates if candidate.key[:-1] == best]


def deciding_criterion(candidates: Sequence[Candidate]) -> str:
    """Returns the first criterion in which the best and the second best candidate differ.

    After this criterion, only one candidate is left, because the second best candidate agrees with the best
    one in more criteria than any other. If there is only one candidate, the result is "only candidate".
    """
    if len(candidates) == 1:
        return "only candidate"
    keys = [candidate.key for candidate in candidates]
    best = min(keys)
    keys.remove(best)  # two passes over all keys take a third of the time of sorting them
    second = min(keys)
    return next(name for name, one, other in zip(CRITERIA, best, second, strict=True) if one != other)
