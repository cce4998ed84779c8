"""What a whole job holds as pods on its nodes: one on each, together exactly as much as the job."""

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
    """Equal pods.

    Attributes:
        count: how many.
        each: resource -> amount of one; cpu in millicores, memory in bytes.
        selector: labels that their nodes must have.
    """

    count: int
    each: Mapping[str, int]
    selector: Mapping[str, str] = field(default_factory=dict)


def amounts_of(held: Tres, asked: Tres) -> tuple[dict[str, int], int]:
    """What a job needs of each resource, all nodes together, and its nodes.

    Args:
        held: what counts.
        asked: what stands in for what `held` does not say.
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
    """How many nodes hold how much of each: as even as whole units allow, larger shares on the same nodes."""
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
    """The pods of a job: of more than one kind if its amounts do not divide by its nodes.

    How much each node really held is not in the accounting: all is spread as evenly as it can be.

    Args:
        amounts: resource -> what the job needs in all.
        nodes: on how many nodes.
        models: types of GPUs that it asked for; only one type can be asked of a node.
    """
    names = tuple(amounts)
    units = tuple(1000 if name == CPU else 1 for name in names)
    selector = {MODEL: models[0]} if len(models) == 1 else {}
    for count, share in _shares(tuple(amounts.values()), nodes, units):
        each = dict(zip(names, share, strict=True))
        yield Pods(count, each, selector if each.get(GPU) else {})
