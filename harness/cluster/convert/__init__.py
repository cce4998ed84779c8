"""Converts quotas from one family to another, such as from ClusterQueues to elastic quotas.

A family reads its objects as quotas (`Quota`), and writes quotas as manifests. The guarantee of a quota is
the nominal quota of a ClusterQueue, or the `min` of an elastic quota. Its limit is the nominal quota plus the
borrowing limit, or the `max`. Notes about each object name its settings that have no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from harness.base.errors import InputError, OptionError, blamed_on
from harness.base.options import there_is
from harness.cluster.convert.elastic import read_elastic, write_elastic
from harness.cluster.convert.kueue import read_kueue, write_kueue
from harness.cluster.draft import Warnings
from harness.cluster.kinds.kind import WriteQuotas
from harness.cluster.kinds.quotas import Quota, quotas_of_plugins
from harness.cluster.kinds.table import KINDS, Kinds
from harness.cluster.load import cluster_from
from harness.cluster.manifests import to_manifests
from harness.cluster.model import Cluster

ELASTIC = "elasticquota"
KUEUE = "kueue"


@dataclass(frozen=True, slots=True)
class Family:
    """A family of kinds that together define quotas, such as Kueue's kinds.

    Attributes:
        called: the name of these quotas in messages.
        kinds: maps each kind to the beginning of its API version.
        read: a function that returns the quotas of a cluster by name. For each setting that is lost in the
            conversion, it adds a note.
        write: a function that returns quotas as manifests of these kinds.
        shares: whether each quota has a weight, and idle capacity is shared in proportion to the weights.
    """

    called: str
    kinds: Mapping[str, str]
    read: Callable[[Cluster, Warnings, Family], Mapping[str, Quota]]
    write: Callable[[Mapping[str, Quota]], Iterable[Mapping[str, Any]]]
    shares: bool = False


_BUILT_IN: Mapping[str, Family] = {
    ELASTIC: Family(
        "elastic quotas",
        {"ElasticQuotaTree": "scheduling.", "ElasticQuota": "scheduling."},
        read_elastic,
        write_elastic,
    ),
    KUEUE: Family(
        "ClusterQueues",
        {
            "ResourceFlavor": "kueue.",
            "ClusterQueue": "kueue.",
            "Cohort": "kueue.",
            "LocalQueue": "kueue.",
            "Workload": "kueue.",
            "Configuration": "config.",
        },
        read_kueue,
        write_kueue,
        shares=True,
    ),
}
"""The built-in families.

WorkloadPriorityClasses belong to none, because they set the priorities of jobs under any scheduler.
"""


@dataclass(frozen=True, slots=True)
class Converted:
    """Manifests with converted quotas, and notes about settings that were lost in the conversion."""

    manifests: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]


def convert(cluster: Cluster, to: str, *, keep: bool = False, kinds: Kinds = KINDS) -> Converted:
    """Returns the manifests of a cluster, with its quotas converted to another family.

    `to` is `elasticquota`, `kueue`, or the name of a plugin's kind, such as `Queue.scheduling.volcano.sh`. If
    `keep` is true, the manifests also contain the original quotas.

    Raises:
        InputError: the cluster has no quotas to convert, has quotas of several other families, or already has
            quotas of the family `to`.
        OptionError: no family has the name `to`.
        PluginError: a plugin's function failed.
    """
    families = {**_BUILT_IN, **_of_plugins(kinds)}
    if to not in families:
        raise OptionError(f"there are no quotas of kind {to!r}", hint=there_is(families))
    target = families[to]
    has = [name for name, family in families.items() if family.read(cluster, Warnings(), target)]
    others = [name for name in has if name != to]
    if to in has:
        what = " and ".join(families[name].called for name in others or _BUILT_IN if name != to)
        raise InputError(
            f"{cluster.source} already has {target.called}",
            hint=f"remove these quotas from the file to convert its {what}",
        )
    if len(others) > 1:
        what = " and ".join(families[name].called for name in others)
        raise InputError(f"{cluster.source} has {what}", hint="keep the quotas of one kind in the file")
    if not others:
        what = " or ".join(family.called for name, family in _BUILT_IN.items() if name != to)
        raise InputError(
            f"{cluster.source} has no {what} to convert",
            hint="harness cluster check shows what the manifests contain",
        )
    source, notes = families[others[0]], Warnings()
    quotas = source.read(cluster, notes, target)
    made = target.write(quotas)
    stay = [each for each in to_manifests(cluster) if keep or not _is_of(each, source)]
    whole = (*stay, *made)
    # Raises an error if the result can't be read.
    converted = cluster_from(whole, f"{cluster.source}, converted to {to}", kinds=kinds)
    if target.shares:
        _tell_weights(quotas, target.read(converted, Warnings(), target), target.called, notes)
    return Converted(whole, notes.sentences())


def _tell_weights(
    before: Mapping[str, Quota], after: Mapping[str, Quota], called: str, notes: Warnings
) -> None:
    """Adds notes about weights, unless the converted quotas have weights in the same proportion."""
    kept = {
        Fraction(after[name].weight) / quota.weight if quota.weight else None
        for name, quota in before.items()
        if name in after and (quota.weight or after[name].weight)
    }
    if len(kept) > 1:
        for name, quota in before.items():
            if quota.weight != 1:
                notes.add("quota", name, f"weight: {called} cannot have weights in the same proportion")


def _is_of(manifest: Mapping[str, Any], family: Family) -> bool:
    start = family.kinds.get(str(manifest.get("kind")))
    return start is not None and str(manifest.get("apiVersion")).startswith(start)


def _of_plugins(kinds: Kinds) -> dict[str, Family]:
    return {
        f"{kind}.{group}": _of_plugin(kind, group, how.write)
        for (group, kind), how in kinds.items()
        if how.write is not None
    }


def _of_plugin(kind: str, group: str, write: WriteQuotas) -> Family:
    name = f"{kind}.{group}"

    def read(cluster: Cluster, notes: Warnings, to: Family) -> Mapping[str, Quota]:
        """Returns the quotas of a kind. Quotas without a parent share one group."""
        quotas = dict(quotas_of_plugins(cluster, name))
        shared = f"all-{kind.lower()}s"
        while shared in quotas:
            shared += "-group"
        for each, quota in quotas.items():
            if quota.weight != 1 and not to.shares:
                notes.add(kind, each, f"weight: {to.called} do not share capacity by weight")
        above = [quota.parent for quota in quotas.values()]
        common = shared if above.count(None) > 1 else None
        return {
            each: quota._replace(parent=quota.parent or common, group=quota.group or each in above)
            for each, quota in quotas.items()
        }

    def written(quotas: Mapping[str, Quota]) -> list[Mapping[str, Any]]:
        with blamed_on(f"the function 'write' of {name} failed"):
            return list(write(quotas))

    return Family(f"{name} objects", {kind: f"{group}/"}, read, written, shares=True)
