"""Computes how much pods held in each topology domain over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from harness.analysis.export.holding import holding
from harness.analysis.metrics.pod_sizes import pod_sizes
from harness.engine.events import NEVER
from harness.runs.epochs import Step
from harness.runs.run import Run


class Level(NamedTuple):
    """A level of a topology in one run.

    Attributes:
        topology, name: the name of the topology, and the node label of the level.
        nodes: for each domain, the names of its nodes. The name of a domain consists of its label values
            for this level and all coarser levels.
    """

    topology: str
    name: str
    nodes: Mapping[str, Sequence[str]]


def levels_of(run: Run) -> list[Level]:
    """Returns the levels of the topologies in a run's cluster, the coarsest first, without the host name."""
    found = []
    for topology in run.info["cluster"].get("domains", ()):
        for depth, name in enumerate(topology["levels"], start=1):
            nodes: dict[str, list[str]] = {}
            for each in topology["domains"]:
                nodes.setdefault("/".join(each["values"][:depth]), []).extend(each["nodes"])
            found.append(Level(topology["name"], name, nodes))
    return found


def capacities(run: Run, level: Level, resource: str) -> Mapping[str, Sequence[Step]]:
    """Returns each domain's capacity for a resource over time, which is the sum over its nodes.

    The first step lasts until the first change.
    """
    pools = run.info["cluster"]["allocatable"]
    rest: Mapping[str, int] = next((pool["amounts"] for pool in pools if "nodes" not in pool), {})
    own = {name: pool["amounts"] for pool in pools for name in pool.get("nodes", ())}
    found = {
        domain: [Step(NEVER, sum(own.get(node, rest).get(resource, 0) for node in nodes))]
        for domain, nodes in level.nodes.items()
    }
    of_nodes = {node: domain for domain, nodes in level.nodes.items() for node in nodes}
    for event in run.info["cluster"].get("events", ()):
        for node, (before, after) in event.get("allocatable", {}).items():
            more = (after or {}).get(resource, 0) - (before or {}).get(resource, 0)
            if more and node in of_nodes:
                course = found[of_nodes[node]]
                now = Step(event["at_us"], (course[-1].amount or 0) + more)
                course[-1 if course[-1].time == now.time else len(course) :] = [now]
    return found


def moves(run: Run, resource: str) -> pl.DataFrame:
    """Returns the changes in what pods hold on nodes, with the columns `time`, `node` and `amount`.

    Raises:
        RunError: a table is damaged, or the run is so old that it does not record when jobs hold resources.
    """
    stays = holding(run, run.window).pods
    sizes = pod_sizes(run)
    job, pod = np.array([(stay.job, stay.pod[0]) for stay in stays if stay.pod], np.int64).reshape(-1, 2).T
    each = sizes.each[run.resources.index(resource)]
    frame = pl.DataFrame(
        {
            "node": pl.Series([stay.node for stay in stays], dtype=pl.String),
            "start": pl.Series([stay.start for stay in stays], dtype=pl.Int64),
            "end": pl.Series([stay.end for stay in stays], dtype=pl.Int64),
        }
    ).with_columns(amount=each[sizes.of(job, pod)])
    return pl.concat(
        [frame.select("node", "amount", time="start"), frame.select("node", -pl.col("amount"), time="end")]
    )


def levels(
    changes: pl.DataFrame, nodes: Mapping[str, Sequence[str]], places: Mapping[str, int]
) -> pl.DataFrame:
    """Returns the amounts that pods hold in each domain over time, in the form that `per_pixel` expects.

    `changes` is the result of `moves`. `places` maps domains to the indices of their series. Domains
    that are not in `places` are left out.
    """
    numbers = {node: places[domain] for domain, own in nodes.items() if domain in places for node in own}
    number = pl.col("node").replace_strict(
        list(numbers), list(numbers.values()), default=None, return_dtype=pl.Int32
    )
    return (
        changes.with_columns(series=number)
        .drop_nulls("series")
        .group_by("series", "time")
        .agg(level=pl.col("amount").sum())
        .sort("series", "time")
        .with_columns(pl.col("level").cum_sum().over("series"))
    )
