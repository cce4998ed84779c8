"""Defines `Quota`, and reads the quotas of objects whose kinds plugins add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from harness.base.errors import PluginError, blamed_on
from harness.cluster.model import Cluster


class Quota(NamedTuple):
    """A quota in a form that doesn't depend on its kind. Metrics and the conversion of quotas use this form.

    An object of a plugin's own kind has a method `quota(cluster)`, which returns its quota in this form. The
    key of the object is the name of the queue.

    Attributes:
        nominal: the guaranteed quantity of each resource, in the units of requests (millicores for cpu). The
            guarantee of a group includes the guarantees of its quotas.
        weight: the weight of the queue when several queues share capacity.
        parent: the name of the group of quotas that this quota belongs to, if any. The quotas of a group lend
            to each other. The group need not be a quota itself.
        limit: the most that its jobs can hold of each resource. Resources that it doesn't name have no limit.
        namespaces: the namespaces whose pods count against the quota.
        lends: whether other quotas can use the idle part of the guarantee.
        group: whether the quota is a group of quotas, and has no jobs of its own.
    """

    nominal: Mapping[str, int]
    weight: int | Fraction = 1
    parent: str | None = None
    limit: Mapping[str, int] | None = None
    namespaces: tuple[str, ...] = ()
    lends: bool = True
    group: bool = False


def quotas_of_plugins(cluster: Cluster, only: str | None = None) -> Iterator[tuple[str, Quota]]:
    """Yields the quotas that objects of plugins' kinds declare, or only the quotas of one of these kinds.

    Raises:
        PluginError: the method of an object failed, or its answer is invalid.
    """
    for kind, objects in cluster.custom_resources.items():
        if only not in (None, kind):
            continue
        for name, each in objects.items():
            method = getattr(each, "quota", None)
            if not callable(method):
                continue
            where = f"{kind.partition('.')[0]} {name}"
            with blamed_on(f"{where} failed in its method 'quota'"):
                found = method(cluster)
            if not _is_quota(found):
                raise PluginError(f"{where}: its method 'quota' must return a Quota, but returned {found!r}")
            yield name, found


def _is_quota(found: Any) -> bool:
    if not isinstance(found, Quota):
        return False
    fields: tuple[Any, ...] = found
    nominal, weight, parent, limit, *_ = fields
    return (
        _are_amounts(nominal)
        and isinstance(weight, (int, Fraction))
        and (parent is None or type(parent) is str)
        and (limit is None or _are_amounts(limit))
    )


def _are_amounts(found: Any) -> bool:
    return isinstance(found, Mapping) and all(
        type(name) is str and type(amount) is int for name, amount in found.items()
    )
