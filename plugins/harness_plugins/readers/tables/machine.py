"""Reads the machine of a data set from a mapping: the number of equal nodes and a node's resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.base.errors import Fault, InputError
from harness.base.units import to_amount

_KEYS = ("nodes", "node", "source")
_CAPACITY, _NODE = "harness.capacity.", "harness.node."
_MOST = 10**6


def machine_faults(machine: Any) -> Iterator[Fault]:
    """Yields the faults of the key `machine`."""
    if not isinstance(machine, Mapping) or not {"nodes", "node"} <= set(machine) <= set(_KEYS):
        yield Fault("machine", "must have the keys 'nodes' and 'node', and may have 'source'")
        return
    nodes = machine["nodes"]
    if not isinstance(nodes, int) or isinstance(nodes, bool) or not 1 <= nodes <= _MOST:
        yield Fault("machine.nodes", f"{nodes!r:.40} is not a number from 1 to {_MOST:,}")
    if not isinstance(machine["node"], Mapping) or not machine["node"]:
        yield Fault("machine.node", "must have an amount for each resource")
        return
    for resource, amount in machine["node"].items():
        try:
            if to_amount(str(resource), str(amount)) <= 0:
                yield Fault(f"machine.node.{resource}", f"{amount!r:.40} must be above 0")
        except InputError as error:
            yield Fault(f"machine.node.{resource}", error.message)


def machine_metadata(machine: Mapping[str, Any]) -> dict[str, str]:
    """Returns the metadata of a trace about the machine: the total and amount per node of each resource."""
    found = {}
    for resource, amount in machine["node"].items():
        one = to_amount(str(resource), str(amount))
        found[f"{_CAPACITY}{resource}"] = str(one * machine["nodes"])
        found[f"{_NODE}{resource}"] = str(one)
    return found
