"""Divides the amounts of a job among pods, one on each node of the job.

The amounts of all pods add up exactly to the amounts of the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from harness.readers.names import GPU, MODEL
from harness_plugins.readers.slurm.amounts import Tres

CPU, MEMORY = "cpu", "memory"


@dataclass(frozen=True, slots=True)
class Pods:
    """A group of equal pods of a job.

    Attributes:
        each: the amount of each resource in one pod, with cpu in millicores and memory in bytes.
        selector: the labels that the nodes of the pods must have.
    """

    count: int
    each: Mapping[str, int]
    selector: Mapping[str, str] = field(default_factory=dict)


def amounts_of(held: Tres, asked: Tres) -> tuple[dict[str, int], int]:
    """Returns the amount of each resource that a job needs on all nodes together, and its number of nodes.

    An amount is that in `held` or, if it is missing there, that in `asked`.
    """
    cpus = asked.cpus if held.cpus is None else held.cpus
    memory = asked.memory if held.memory is None else held.memory
    gpus = held.gpus if held else asked.gpus
    nodes = asked.nodes if held.nodes is None else held.nodes
    amounts = {CPU: None if cpus is None else cpus * 1000, MEMORY: memory, GPU: gpus}
    return {name: amount for name, amount in amounts.items() if amount}, max(1, nodes or 1)


@lru_cache(maxsize=1 << 14)
def _shares(
    totals: tuple[int, ...], nodes: int, units: tuple[int, ...]
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Returns groups of nodes, with the number of nodes and the share of each node.

    The shares are as even as whole units allow. For all resources, the larger shares are on the same nodes.
    """
    whole = [total // (nodes * unit) * unit for total, unit in zip(totals, units, strict=True)]
    more = [(total - nodes * each) // unit for total, each, unit in zip(totals, whole, units, strict=True)]
    found: list[tuple[int, tuple[int, ...]]] = []
    edges = sorted({0, nodes, *(count for count in more if count)})
    for begin, end in pairwise(edges):
        share = [
            each + (unit if begin < count else 0)
            for each, unit, count in zip(whole, units, more, strict=True)
        ]
        found.append((end - begin, tuple(share)))
    return tuple(found)


def pods_of(amounts: Mapping[str, int], nodes: int, models: tuple[str, ...]) -> Iterator[Pods]:
    """Yields the pods of a job, with several kinds of pods if the amounts do not divide evenly.

    The accounting lacks the actual amounts of each node, so all amounts are spread as evenly as possible.

    `models` has the types of GPUs that the job requested. A pod can request only one type.
    """
    names = tuple(amounts)
    units = tuple(1000 if name == CPU else 1 for name in names)
    selector = {MODEL: models[0]} if len(models) == 1 else {}
    for count, share in _shares(tuple(amounts.values()), nodes, units):
        each = dict(zip(names, share, strict=True))
        yield Pods(count, each, selector if each.get(GPU) else {})
