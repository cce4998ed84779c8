"""Knobs turned to a value, or to this many times what the manifests say."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from harness.base.errors import InputError
from harness.base.units import exact_number
from harness.cluster.changes.knobs import Value

if TYPE_CHECKING:
    from harness.cluster.model import Cluster

_TIMES = "x"
_WEIGHT = ".weight"
_USUAL_WEIGHT = 1
"""Of queues whose manifests say no weight, as Kueue has it."""


def is_knob(name: str) -> bool:
    """Whether what varies is a knob of the cluster, rather than a setting or an option."""
    return "/" in name or "*" in name


def turned(cluster: Cluster, values: Mapping[str, Value]) -> Cluster:
    """A cluster with knobs at these values; see `multiplied`.

    Raises:
        InputError: there is no such knob, or a value is none of its kind.
        ClusterError: manifests with these values are faulty.
    """
    found = multiplied(cluster, values)
    return cluster.with_values(found) if found else cluster


def multiplied(cluster: Cluster, values: Mapping[str, Value]) -> dict[str, Any]:
    """Path of a knob -> value, of values or `x1.1` for 1.1 times what there is.

    Amounts are rounded up to what can be had of their resource, as Kubernetes rounds quantities. A limit
    that manifests do not state stays none whatever it is multiplied by.

    Raises:
        InputError: there is no such knob to multiply.
    """
    found: dict[str, Any] = {}
    for path, value in values.items():
        times = _times(path, value)
        if times is None:
            found[path] = value
            continue
        there = {
            each: _USUAL_WEIGHT if amount is None and each.endswith(_WEIGHT) else amount
            for each, amount in cluster.knobs(path).items()
        }
        stated = {each: amount * times for each, amount in there.items() if amount is not None}
        if not stated:
            raise InputError(
                f"{path}: the manifests state no value that {value} could multiply", hint="give a value"
            )
        found |= stated
    return found


def _times(path: str, value: Value) -> Fraction | None:
    """The factor of a value such as `x0.9`; None if the value sets the knob."""
    if not isinstance(value, str) or not value.startswith(_TIMES):
        return None
    try:
        times = exact_number(value.removeprefix(_TIMES))
    except ValueError as error:
        raise InputError(f"{path}: {error}", hint="write x0.9 for nine tenths of what there is") from error
    if times < 0:
        raise InputError(f"{path}: {value} is below 0", hint="write x0.9 for nine tenths of what there is")
    return times
