"""Converts the output of `sacctmgr -P show assoc` to quotas.

Accounts with child accounts become cohorts. All other accounts become ClusterQueues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.base.errors import ClusterError, Fault
from harness.base.names import kubernetes_name
from harness.cluster.draft import Warnings
from harness.cluster.manifests import cluster_queue_manifest, cohort_manifest, flavor_manifest
from harness.cluster.model import ResourceQuota
from harness.cluster.slurm.nodes import GPU
from harness.cluster.slurm.tables import Row, gpus_of, read_table

ASSOCIATIONS = "sacctmgr -P show assoc tree"
_FLAVOR = "default"
_PREEMPTION = {"reclaimWithinCohort": "LowerPriority", "withinClusterQueue": "LowerPriority"}
_MODELLED = (
    "Cluster", "Account", "User", "Partition", "Share", "GrpTRES", "ParentName", "QOS", "Def QOS", "ID",
)  # fmt: skip


@dataclass
class Account:
    """An account.

    Attributes:
        share: the share of the account, relative to the sum of the shares of its siblings and itself.
        limit: the maximum quantity of each resource for all jobs of the account together. It is empty if
            there is no limit.
        users: the sum of the shares of the account's own users.
    """

    name: str
    share: int
    limit: Mapping[str, int]
    users: int = 0
    below: list[Account] = field(default_factory=list)


def read_accounts(path: Path, notes: Warnings) -> list[Account]:
    """Returns the top-level accounts of the tree. `root`, which contains all accounts, is not included.

    Raises:
        ClusterError: the file contains no such table, or rows are malformed. The error lists all malformed
            rows.
    """
    faults: list[Fault] = []
    rows = read_table(path, ("Account", "User", "Share"), ASSOCIATIONS)
    clusters = sorted({row.text("Cluster") for row in rows})
    if len(clusters) > 1:
        faults.append(Fault("", f"has several clusters: {', '.join(clusters)[:200]}; keep one of them"))
    top = Account("root", 1, {})
    open_at: list[tuple[int, Account]] = [(-1, top)]
    known: dict[str, Account] = {"root": top}
    for row in rows:
        name = row.text("Account")
        if row.text("User"):
            _add_user(row, known.get(name), faults, notes)
            continue
        if name == "root":
            continue
        if not name or name in known:
            faults.append(Fault(row.place, f"account {name!r} {'occurs twice' if name else 'has no name'}"))
            continue
        text = row.cells.get("Account", "")
        depth = len(text) - len(text.lstrip())
        while open_at[-1][0] >= depth and len(open_at) > 1:
            open_at.pop()
        parent = known.get(row.text("ParentName"), open_at[-1][1])
        account = Account(name, _share(row, name, faults, notes), _limit(row, name, faults, notes))
        parent.below.append(account)
        known[name] = account
        open_at.append((depth, account))
        _say("Account", name, row, notes)
    if not faults and not top.below:
        faults.append(Fault("", "has no accounts"))
    if faults:
        raise ClusterError(str(path), faults)
    return top.below


def _add_user(row: Row, account: Account | None, faults: list[Fault], notes: Warnings) -> None:
    name = f"{row.text('User')} of {row.text('Account')}"
    if account is None:
        faults.append(Fault(row.place, f"user {name}: no row above defines the user's account"))
        return
    account.users += _share(row, name, faults, notes)
    if row.text("GrpTRES"):
        notes.add("User", name, "GrpTRES")
    _say("User", name, row, notes)


def _share(row: Row, name: str, faults: list[Fault], notes: Warnings) -> int:
    if row.text("Share") == "parent":
        notes.add("Association", name, "Share=parent, which counts as 1")
        return 1
    return row.count("Share", faults, default=1)


def _limit(row: Row, name: str, faults: list[Fault], notes: Warnings) -> dict[str, int]:
    amounts = row.tres("GrpTRES", faults)
    others = sorted(
        each for each in amounts if each not in ("cpu", "mem") and not each.startswith("gres/gpu")
    )
    if others:
        notes.add("Account", name, f"GrpTRES of {', '.join(others)}")
    gpus, _ = gpus_of(amounts)
    limit = {"cpu": amounts.get("cpu", -1) * 1000, "memory": amounts.get("mem", -1)}
    limit[GPU] = gpus if any(name.startswith("gres/gpu") for name in amounts) else -1
    return {resource: size for resource, size in limit.items() if size >= 0}


def _say(kind: str, name: str, row: Row, notes: Warnings) -> None:
    for column in row.cells:
        if column not in _MODELLED and row.text(column):
            notes.add(kind, name, column)


def quota_manifests(
    accounts: Sequence[Account], capacity: Mapping[str, int], notes: Warnings
) -> Iterator[dict[str, Any]]:
    """Yields the manifests of the flavor, the cohorts and the queues.

    The nominal quota of an account is its share. Accounts can borrow from each other.
    """
    yield flavor_manifest(_FLAVOR)
    notes.add("Account", "", "users' own shares within an account: jobs of one queue are not ordered by user")
    yield from _level(accounts, "all", capacity, notes, own=0, name="")


def _level(
    accounts: Sequence[Account],
    cohort: str,
    capacity: Mapping[str, int],
    notes: Warnings,
    *,
    own: int,
    name: str,
) -> Iterator[dict[str, Any]]:
    """Yields the queues and cohorts of sibling accounts, which divide the capacity of their parent.

    `own` is the sum of the shares of the parent's own users.
    """
    shares = (
        [own, *(account.share for account in accounts)] if own else [account.share for account in accounts]
    )
    parts = [_part(capacity, shares, place) for place in range(len(shares))]
    if own:
        yield _queue(name, own, parts.pop(0), {}, cohort)
    for account, part in zip(accounts, parts, strict=True):
        if not account.below:
            yield _queue(account.name, account.share, part, account.limit, cohort)
            if kubernetes_name(account.name) != account.name:
                notes.add("Account", account.name, f"is called {kubernetes_name(account.name)}")
            continue
        inner = kubernetes_name(f"{account.name}-cohort")
        manifest = cohort_manifest(inner, cohort, _FLAVOR, {})
        manifest.setdefault("spec", {})["fairSharing"] = {"weight": str(account.share)}
        yield manifest
        if account.limit:
            notes.add("Account", account.name, "GrpTRES of an account with accounts below it")
        yield from _level(account.below, inner, part, notes, own=account.users, name=account.name)


def _part(capacity: Mapping[str, int], shares: Sequence[int], place: int) -> dict[str, int]:
    """Returns the part of the capacity that belongs to one index of `shares`.

    All parts add up to the capacity.
    """
    total = sum(shares) or len(shares)
    counts = list(shares) if sum(shares) else [1] * len(shares)
    before = sum(counts[:place])
    return {
        resource: _whole(resource, amount * (before + counts[place]) // total)
        - _whole(resource, amount * before // total)
        for resource, amount in capacity.items()
    }


def _whole(resource: str, amount: int) -> int:
    unit = {"cpu": 1000, "memory": 2**20}.get(resource, 1)
    return amount // unit * unit


def _queue(
    name: str, share: int, part: Mapping[str, int], limit: Mapping[str, int], cohort: str
) -> dict[str, Any]:
    quotas: dict[str, int | ResourceQuota] = {}
    for resource, amount in part.items():
        most = limit.get(resource)
        nominal = amount if most is None else min(amount, most)
        quotas[resource] = nominal if most is None else ResourceQuota(nominal, borrowing_limit=most - nominal)
    manifest = cluster_queue_manifest(
        kubernetes_name(name), _FLAVOR, quotas, cohort=cohort, preemption=_PREEMPTION
    )
    manifest["spec"]["fairSharing"] = {"weight": str(share)}
    return manifest
