"""How `harness trace calibrate` shows what gives a wanted load."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from harness.text import aligned
from harness.trace.target import Target
from harness.units import short_amount


def document(target: Target) -> dict[str, Any]:
    """Everything, as JSON values; amounts in the schema's units."""
    return {
        "schema": "1",
        "resource": target.resource,
        "offered": {
            resource: {"mean": float(offer.mean), "capacity": offer.capacity, "load": float(offer.load)}
            for resource, offer in target.offers.items()
        },
        "scale_arrivals": {
            "factor": float(target.scale_arrivals),
            "load": float(target.arrivals_load),
        },
        "scale_cluster": {"factor": float(target.scale_cluster), "load": float(target.cluster_load)},
    }


def report(target: Target) -> str:
    """The same for people."""
    rows = [("offered now", "mean", "capacity", "load")]
    for resource, offer in target.offers.items():
        amounts = [short_amount(resource, float(amount)) for amount in (offer.mean, offer.capacity)]
        rows.append((resource, amounts[0], amounts[1], _percent(offer.load)))
    ways = [
        (f"for {target.resource}, either", "gives"),
        (f"--scale-arrivals {float(target.scale_arrivals):g}", _percent(target.arrivals_load)),
        (f"--scale-cluster {float(target.scale_cluster):g}", _percent(target.cluster_load)),
    ]
    return f"{aligned(rows)}\n\n{aligned(ways)}"


def _percent(load: Fraction) -> str:
    return f"{100 * float(load):.1f} %"
