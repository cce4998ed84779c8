"""The fields of a decision's `detail` that explanations use, for all policies.

The page `docs/explain.md` describes these fields for authors of policies. All fields are optional. If a
field's value has an unexpected form, the field is ignored, because a third-party policy may use the name for
another purpose.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

from harness.base.units import format_amount, plain_number

Table = Mapping[str, Mapping[str, int]]
"""Maps a name of a queue, quota or reason, and then a label of a resource (or `count`), to an amount."""


@dataclass(frozen=True)
class Figures:
    """The contents of a decision's `detail`.

    A label is the name of a resource, or `flavor/resource`. Every attribute is empty if the policy does not
    record it.

    Attributes:
        queue: the quota of the preemptor or of the waiting job.
        message: the message of the scheduler's component for this decision.
        request, short: for each label, the requested amount, and the missing part of this amount.
        usage, quota, most: for each queue or cohort and label, the used, guaranteed and maximum amounts.
        runtime: for each quota and label, the amount that the quota may use at the time, if this amount
            depends on the requests of all quotas.
        taken: for each quota and label, the amount that the quota loses to the preemptor.
        pool: the name of a pool that several queues share, its usage and its quota, and the amounts that the
            queues keep for themselves.
        shares: for each queue or cohort, its weighted share before and after the decision.
        local_queues: for each LocalQueue, the usage by which LocalQueues are ordered.
        nodes: for each reason, the number of nodes that reject the pod.
        not_freed: for each reason, the number of nodes that preemption cannot free.
        most_free: for each resource, the largest amount that is free on a single node.
        preemption: the reason why no pod is preempted.
        node, criterion, candidates: the node of a preemption, the criterion that selected this node, and the
            number of candidate nodes.
        pdb_violations: the number of victims whose eviction violates a disruption budget.
        borrowing: the height of the cohort from which quota is borrowed; 1 if only queues are below it.
        lenders: for each label, the queue or cohort that lends the quota.
        counts: for each pod set, the number of admitted pods, if it is smaller than the requested number.
        checks: for each admission check, the time from the reservation of quota until the check is ready, in
            microseconds.
        round: how many times in a row the victim has been evicted, while neither the victim nor the preemptor
            made progress. This eviction is included.
        gang: how many pods are placed together.
        waiting: how many pods of the pod group still wait at that time.
        pod: the pod that the decision is about.
        victims: the priority of each pod that must leave before the chosen node is free.
        nominated: for each label, the requests of pods that were nominated earlier.
        holders: for each queue that holds most of a missing resource, the amount that it holds of each
            label. None if the policy did not record the queues.
        ahead: for each job that was considered earlier in the cycle, the amount of each label that is
            reserved for the job.
        waits_for: maps each job that the refused job waits for to the job for which it is evicted, or to "".
        fields: the manifest fields that prevent the job from preempting, with their values.
        borrows: the labels for which the job would have to borrow, if borrowing rules out a preemption.
        tried: how many candidates for a preemption the policy tried before `candidate`.
        candidate, strategies: a candidate that fair sharing protects from preemption, and the strategies that
            protect it. If there is a candidate, `shares` has other values: the share with the job, and the
            share without the candidate.
        lacks: the only thing that the job lacks, if it has enough quota.
        again: True if the same refusal was already recorded, with all details, during this wait.
        replaced_by: the number of pods on each node that replaces a failed node.
    """

    queue: str = ""
    message: str = ""
    request: Mapping[str, int] = field(default_factory=dict)
    short: Mapping[str, int] = field(default_factory=dict)
    usage: Table = field(default_factory=dict)
    quota: Table = field(default_factory=dict)
    most: Table = field(default_factory=dict)
    runtime: Table = field(default_factory=dict)
    taken: Table = field(default_factory=dict)
    pool: tuple[str, Mapping[str, int], Mapping[str, int], Mapping[str, int]] | None = None
    shares: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    local_queues: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    not_freed: Mapping[str, int] = field(default_factory=dict)
    most_free: Mapping[str, int] = field(default_factory=dict)
    preemption: str = ""
    node: str = ""
    criterion: str = ""
    candidates: int = 0
    pdb_violations: int = 0
    borrowing: int = 0
    lenders: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    checks: Mapping[str, int] = field(default_factory=dict)
    round: int = 0
    gang: int = 0
    waiting: int = 0
    pod: str = ""
    victims: Mapping[str, int] = field(default_factory=dict)
    nominated: Mapping[str, int] = field(default_factory=dict)
    holders: Table | None = None
    ahead: Table = field(default_factory=dict)
    waits_for: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    borrows: tuple[str, ...] = ()
    tried: int = 0
    candidate: str = ""
    strategies: tuple[str, ...] = ()
    lacks: str = ""
    again: bool = False
    replaced_by: Mapping[str, int] = field(default_factory=dict)


def read(detail: str | None) -> Figures:
    """Parses the JSON text of a decision's `detail`. If there is no text, all attributes are empty."""
    found = json.loads(detail) if detail else {}
    if not isinstance(found, dict):
        return Figures()
    pool = found.get("pool")
    gang = found.get("gang")
    return Figures(
        queue=_text(found.get("queue")),
        message=_text(found.get("message")),
        request=_amounts(found.get("request")),
        short=_amounts(found.get("short")),
        usage=_table(found.get("usage")),
        quota=_table(found.get("quota")),
        most=_table(found.get("max")),
        runtime=_table(found.get("runtime")),
        taken=_table(found.get("taken")),
        pool=_pool(pool) if isinstance(pool, dict) else None,
        shares=_shares(found.get("share")),
        local_queues=_usages(found.get("localQueues")),
        nodes=_counts(found.get("nodes")),
        not_freed=_counts(found.get("not_freed")),
        most_free=_amounts(found.get("most_free")),
        preemption=_text(found.get("preemption")),
        node=_text(found.get("node")),
        criterion=_text(found.get("criterion")),
        candidates=_number(found.get("candidates")),
        pdb_violations=_number(found.get("pdb_violations")),
        borrowing=_number(found.get("borrowing")),
        lenders=_texts(found.get("lenders")),
        counts=_amounts(found.get("counts")),
        checks=_amounts(found.get("checks")),
        round=_number(found.get("round")),
        gang=_number(gang.get("pods") if isinstance(gang, dict) else gang),
        waiting=_number(found.get("waiting")),
        pod=_text(found.get("pod")),
        victims=_amounts(found.get("victims")),
        nominated=_amounts(found.get("nominated")),
        holders=_table(found["holders"]) if isinstance(found.get("holders"), dict) else None,
        ahead=_table(found.get("ahead")),
        waits_for=_texts(found.get("waitsFor")),
        fields=_usages(found.get("fields")),
        borrows=_names(found.get("borrows")),
        tried=_number(found.get("tried")),
        candidate=_text(found.get("candidate")),
        strategies=_names(found.get("strategies")),
        lacks=_text(found.get("lacks")),
        replaced_by=_amounts(found.get("replacedBy")),
        again=found.get("again") is True,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if type(value) is int else 0


def _amounts(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    return {key: amount for key, amount in sorted(value.items()) if type(amount) is int}


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {key: text for key, text in sorted(value.items()) if isinstance(text, str)}


def _names(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _table(value: Any) -> dict[str, dict[str, int]]:
    return (
        {key: _amounts(amounts) for key, amounts in sorted(value.items())} if isinstance(value, dict) else {}
    )


def _counts(value: Any) -> dict[str, int]:
    return {reason: row["count"] for reason, row in _table(value).items() if "count" in row}


def _pool(value: Mapping[str, Any]) -> tuple[str, Mapping[str, int], Mapping[str, int], Mapping[str, int]]:
    name, usage, quota = _text(value.get("name")), _amounts(value.get("usage")), _amounts(value.get("quota"))
    return name, usage, quota, _amounts(value.get("kept"))


def _shares(value: Any) -> dict[str, tuple[str, str]]:
    if not isinstance(value, dict):
        return {}
    pairs = {name: pair for name, pair in sorted(value.items()) if isinstance(pair, list) and len(pair) == 2}
    return {name: (_share(before), _share(after)) for name, (before, after) in pairs.items()}


def _usages(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {name: _share(usage) for name, usage in sorted(value.items())}


def _share(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return str(value)
    return plain_number(value, 6).replace(",", "")


def share_of(text: str) -> float:
    """Converts the text of a share into a number, or into infinity if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return inf


class Units:
    """Formats amounts. The label of an amount, `resource` or `flavor/resource`, determines its format.

    Args:
        resources: the known resources. Their names may contain slashes, too.
        flavors: whether to name flavors, which is useful only if there are several.
    """

    def __init__(self, resources: Iterable[str], *, flavors: bool = False) -> None:
        self._known = frozenset(resources)
        self._flavors = flavors

    def resource(self, label: str) -> str:
        """Returns the resource that a label names."""
        if label not in self._known and "/" in label:
            rest = label.partition("/")[2]
            if rest in self._known:
                return rest
        return label

    def amount(self, label: str, amount: int) -> str:
        """Formats an amount without its unit: `8`, `500m`, `16Gi`."""
        return format_amount(self.resource(label), amount)

    def alike(self, label: str, *amounts: int) -> list[str]:
        """Formats amounts without their unit. Cores are in millicores unless all amounts are whole cores."""
        texts = [self.amount(label, each) for each in amounts]
        if self.resource(label) == "cpu" and any(each.endswith("m") for each in texts):
            return [f"{each}m" if each else "0" for each in amounts]
        return texts

    def kind(self, label: str) -> str:
        """Formats a label: `nvidia.com/gpu`, or with several flavors `nvidia.com/gpu of spot`."""
        resource = self.resource(label)
        if not self._flavors or resource == label:
            return resource
        return f"{resource} of {label.removesuffix(f'/{resource}')}"

    def named(self, label: str, amount: int) -> str:
        """Formats an amount with its resource: `8 nvidia.com/gpu`."""
        kind = self.kind(label)
        if amount == 1 and self.resource(label) == "pods":
            kind = kind.replace("pods", "pod", 1)
        return f"{self.amount(label, amount)} {kind}"
