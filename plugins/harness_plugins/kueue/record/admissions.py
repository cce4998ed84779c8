"""Converts admissions to decisions, with the names of flavors, pod counts and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import final

from harness.base.memo import Memo
from harness.policy import Admit
from harness_plugins.kueue.record.details import DecisionDetails
from harness_plugins.kueue.record.places import as_manifests, spans
from harness_plugins.kueue.rules.admission_checks import AdmissionChecks
from harness_plugins.kueue.rules.entry import Admitted
from harness_plugins.kueue.rules.flavor_assigner import Assignment
from harness_plugins.kueue.rules.flavor_offers import PodSetOffer
from harness_plugins.kueue.state.asks import Asks
from harness_plugins.kueue.state.workload import Chosen, Workload


@final
class Admissions:
    """Records admissions."""

    def __init__(
        self,
        details: DecisionDetails,
        offers: Callable[[Workload], tuple[PodSetOffer, ...]],
        checks: AdmissionChecks | None,
    ) -> None:
        self._details = details
        self._offers = offers
        self._checks = checks
        # The key is the content of the mapping, because equal mappings must be one object (see `Admit`).
        self._flavors: Memo[tuple[object, ...], Mapping[str, Mapping[str, str]]] = Memo()
        self._chosen: Memo[tuple[object, Chosen], Mapping[str, Mapping[str, str]]] = Memo()

    def decision(self, admitted: Admitted) -> Admit:
        """Returns the decision for an admission, with the delay of its admission checks."""
        workload, assignment = admitted
        detail = self._details.admission(workload, assignment)
        fewer = counts_of(workload, assignment.counts)
        if fewer:
            detail = {**detail, "counts": fewer}
        if assignment.placed:
            topology = as_manifests(assignment.placed)
            detail = {**detail, "topology": topology, "spans": spans(assignment.placed)}
        asks = workload.asks
        runs = _named(asks, workload.running(assignment.counts), asks.present)
        flavors = self.flavors_of(workload, assignment)
        delay = 0
        if self._checks is not None and (checks := self._checks.of(workload.cluster_queue.name, flavors)):
            delay = max(checks.values())
            detail = {**detail, "checks": checks}
        return Admit(workload.job, flavors, runs, detail, delay)

    def flavors_of(self, workload: Workload, assignment: Assignment) -> Mapping[str, Mapping[str, str]]:
        """Returns the flavor of each resource for each pod set. The same choice gives the same object."""
        offers = self._offers(workload)
        known = self._chosen.get((offers, assignment.chosen))
        if known is not None:
            return known
        chosen = []
        for offer, places in zip(offers, assignment.chosen, strict=True):
            groups = zip(offer.groups, places, strict=True)
            taken = tuple([(group.resources, group.flavors[place]) for group, place in groups])
            chosen.append((offer.pod_set.name, taken))
        key = tuple(chosen)
        flavors = self._flavors.get(key)
        if flavors is None:
            flavors = self._flavors[key] = {
                name: {resource: flavor for resources, flavor in groups for resource in resources}
                for name, groups in chosen
            }
        self._chosen[offers, assignment.chosen] = flavors
        return flavors


def counts_of(workload: Workload, counts: tuple[int, ...]) -> Mapping[str, int]:
    """Returns the number of pods with quota, for each pod set in which this is not the original number."""
    return _named(workload.asks, counts, workload.asks.full)


def _named(asks: Asks, counts: tuple[int, ...], usual: tuple[int, ...]) -> Mapping[str, int]:
    """Returns the counts in `counts` that differ from those in `usual`, by the name of the pod set."""
    if counts == usual:
        return {}
    return {
        pod_set.name: count
        for pod_set, count, whole in zip(asks.pod_sets, counts, usual, strict=True)
        if count != whole
    }
