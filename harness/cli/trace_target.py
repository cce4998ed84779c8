"""Formats the scales that `harness trace calibrate` computes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from harness.base.text import aligned
from harness.base.units import plain_number, short_amount
from harness.trace.target import Target


def document(target: Target) -> dict[str, Any]:
    """Returns the scales as JSON values, with quantities in the schema's units."""
    return {
        "schema": "1",
        "resource": target.resource,
        "offered": {
            resource: {"mean": float(offer.mean), "capacity": offer.capacity, "load": float(offer.load)}
            for resource, offer in target.offers.items()
        },
        "scale_arrivals": {"factor": float(target.scale_arrivals), "load": float(target.arrivals_load)},
        "scale_cluster": {
            "factor": float(target.scale_cluster),
            "load": float(target.cluster_load),
            "reaches": target.cluster_reaches,
        },
    }


def report(target: Target, width: int | None = None) -> str:
    """Returns the scales as text, in tables of at most `width` characters."""
    rows = [("offered now", "mean", "capacity", "load")]
    for resource, offer in target.offers.items():
        amounts = [short_amount(resource, float(amount)) for amount in (offer.mean, offer.capacity)]
        rows.append((resource, amounts[0], amounts[1], _percent(offer.load)))
    arrivals = (f"--scale-arrivals {_factor(target.scale_arrivals)}", _percent(target.arrivals_load))
    cluster = (f"--scale-cluster {_factor(target.scale_cluster)}", _percent(target.cluster_load))
    if target.cluster_reaches:
        ways = [(f"for {target.resource}, either", "gives"), arrivals, cluster]
        return "\n\n".join(aligned(each, width=width) for each in (rows, ways))
    ways = [(f"for {target.resource}", "gives"), arrivals]
    nearest = (
        f"nodes and quotas have whole units, so no cluster gives exactly {_percent(target.wanted)}:  "
        f"{cluster[0]} comes nearest, with {cluster[1]}"
    )
    return "\n\n".join([*(aligned(each, width=width) for each in (rows, ways)), nearest])


def _factor(scale: Fraction) -> str:
    return plain_number(float(scale), 6).replace(",", "")


def _percent(load: Fraction) -> str:
    return f"{100 * float(load):.1f} %"
