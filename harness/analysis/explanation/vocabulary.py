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

    A label is the name of a resource, or `flavor/resource`.

    Attributes:
        queue: the quota of the preemptor or of the waiting job.
        message: the component's own sentence.
        request, short: for each label, the requested amount, and how much of the requested amount is missing.
        usage, quota, most: the used, guaranteed and maximum amounts, by name and label.
        runtime: the amount that is currently allowed, by name and label, if it depends on the requests of all
            quotas.
        taken: the amount that a preemption takes from a quota, by name and label.
        pool: the name, usage and quota of a pool that several queues share, and what the queues keep for
            themselves.
        shares: for each name, the weighted share before and after.
        local_queues: for each LocalQueue, the usage that determines its order.
        nodes: for each reason, the number of nodes that are unsuitable.
        not_freed: for each reason, the number of nodes that preemption cannot free.
        most_free: for each resource, the largest amount that is free on a single node.
        preemption: why no job is preempted.
        node, criterion, candidates: the node chosen for a preemption, the criterion, and the number of
            candidates.
        pdb_violations: the number of victims that break a disruption budget.
        borrowing: the height of the cohort from which quota is borrowed.
        lenders: for each label, the cohort that lends the quota.
        counts: for each pod set, the number of admitted pods, if it is smaller than the requested number.
        checks: for each admission check, the time from the reservation of quota until the check is ready, in
            microseconds.
        round: the number of successive evictions without progress on either side, including this one.
        gang: how many pods are placed together.
        waiting: how many pods of the pod group still wait at that time.
        pod: the pod that the decision is about.
        victims: the priority of each pod that must leave before the chosen node is free.
        nominated: for each label, the requests of pods that were nominated earlier.
        holders: for each label that is short, the queues that hold the most, with their amounts by label. It
            is None if the policy did not record them.
        ahead: for each job that was considered earlier, the amount that is reserved for it, by label.
        waits_for: the jobs that the refused job waits for. Each has the name of the job for which it is
            evicted, or "".
        fields: the manifest fields that prevent the job from preempting, with their values.
        borrows: the labels for which the job would have to borrow, if borrowing rules out a preemption.
        tried: how many candidates the policy tried before `candidate`, which fair sharing protects from
            preemption.
        candidate, strategies: the next candidate, and the strategies that forbid preempting it. In this
            case, `shares` are the shares with the job and without the candidate.
        lacks: the only thing that the job lacks, unless it lacks quota.
        again: whether the same refusal was already recorded, with all figures, during this wait.
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
    """Reads the figures of a decision's detail. Without a detail, all figures are empty."""
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

    def kind(self, label: str) -> str:
        """Formats a label: `nvidia.com/gpu`, or with several flavors `nvidia.com/gpu of spot`."""
        resource = self.resource(label)
        if not self._flavors or resource == label:
            return resource
        return f"{resource} of {label.removesuffix(f'/{resource}')}"

    def named(self, label: str, amount: int) -> str:
        """Formats an amount with its resource: `8 nvidia.com/gpu`."""
        return f"{self.amount(label, amount)} {self.kind(label)}"
