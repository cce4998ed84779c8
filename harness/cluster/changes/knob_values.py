"""Sets knobs to given values, or to multiples of their values in the manifests."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from harness.base.errors import InputError
from harness.base.units import exact_number
from harness.cluster.changes.knobs import Value
from harness.cluster.model import Cluster

_TIMES = "x"
_WEIGHT = ".weight"
_USUAL_WEIGHT = 1  # the default weight of a queue, as in Kueue


def is_knob(name: str) -> bool:
    """Returns True if a name has the form of a knob of a cluster, such as `ClusterQueue/team-a.weight`."""
    return "/" in name or "*" in name


def turned(cluster: Cluster, values: Mapping[str, Value]) -> Cluster:
    """Returns a copy of a cluster with some knobs set to the given values.

    A value such as `x1.1` multiplies the current value of the knob. See `multiplied`.

    Raises:
        InputError: a knob does not exist, or a value has the wrong type.
        ClusterError: the manifests with these values are faulty.
    """
    found = multiplied(cluster, values)
    return cluster.with_values(found) if found else cluster


def multiplied(cluster: Cluster, values: Mapping[str, Value]) -> dict[str, Any]:
    """Resolves relative values. For example, `x1.1` becomes 1.1 times the current value of the knob.

    Quantities are rounded up to the smallest unit of their resource, as in Kubernetes. If the manifests don't
    set a limit, it remains unset. The result maps the path of each knob to its value.

    Raises:
        InputError: a knob to multiply does not exist.
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
                f"{path}: the manifests contain no value that {value} could multiply", hint="give a value"
            )
        found |= stated
    return found


def _times(path: str, value: Value) -> Fraction | None:
    """Returns the factor in a value such as `x0.9`, or None if the value is absolute."""
    if not isinstance(value, str) or not value.startswith(_TIMES):
        return None
    try:
        times = exact_number(value.removeprefix(_TIMES))
    except ValueError as error:
        raise InputError(
            f"{path}: {error}", hint="write x0.9 for nine tenths of the current value"
        ) from error
    if times < 0:
        raise InputError(
            f"{path}: {value} is below 0", hint="write x0.9 for nine tenths of the current value"
        )
    return times
