"""Quotas that the kinds of plugins declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.base.errors import PluginError, blamed_on

if TYPE_CHECKING:
    from harness.cluster.model import Cluster


class Quota(NamedTuple):
    """A quota of a plugin's own kind, against which metrics measure the jobs of a queue.

    An object of such a kind has a method `quota(cluster)`, which returns its quota in this form. The key of
    the object is the name of the queue.

    Attributes:
        nominal: the guaranteed quantity of each resource, in the units of requests (millicores for cpu).
        weight: the weight of the queue when several queues share capacity.
        parent: the name of the group of quotas that this quota belongs to, if any.
    """

    nominal: Mapping[str, int]
    weight: int | Fraction = 1
    parent: str | None = None


def quotas_of_plugins(cluster: Cluster) -> Iterator[tuple[str, Quota]]:
    """Yields the quotas that objects of plugins' kinds declare, with their names.

    Raises:
        PluginError: the method of an object failed, or its answer is invalid.
    """
    for kind, objects in cluster.custom_resources.items():
        for name, each in objects.items():
            method = getattr(each, "quota", None)
            if not callable(method):
                continue
            where = f"{kind.partition('.')[0]} {name}"
            with blamed_on(f"{where} failed in its method quota"):
                found = method(cluster)
            if not _is_quota(found):
                raise PluginError(f"{where}: its method quota must return a Quota, but returned {found!r}")
            yield name, found


def _is_quota(found: Any) -> bool:
    if not isinstance(found, Quota):
        return False
    fields: tuple[Any, ...] = found
    nominal, weight, parent = fields
    return (
        isinstance(nominal, Mapping)
        and all(type(name) is str and type(amount) is int for name, amount in nominal.items())
        and isinstance(weight, (int, Fraction))
        and (parent is None or type(parent) is str)
    )
