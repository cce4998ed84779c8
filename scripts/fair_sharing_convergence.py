"""Measures how fast fair sharing makes shares equal, and at what cost, for each list of strategies.

One queue floods a cohort of 64 cores with jobs. A second queue begins after two hours, and a third one with
twice the weight after four hours. All three queues have more jobs than fit, either of mixed sizes or only
large ones. Usage:

    python scripts/fair_sharing_convergence.py FOLDER

The script writes traces, manifests and runs into FOLDER, and two tables. `shares.csv` has every queue's share
at every change, and can be drawn as steps. `summary.csv` has one row per mix of jobs and list of strategies.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

import harness
from harness.cluster.manifests import cluster_queue_manifest, cohort_manifest, dump_yaml, flavor_manifest

CORES = 64
HOUR = 3600
SEED = 5
SIZES = {"mixed": (1, 1, 2, 2, 4, 8, 16), "large": (32,)}
"""The cores of jobs, drawn with equal probabilities. The strategies differ only for large jobs."""

ARRIVALS = {"flood": (0, 1), "second": (2 * HOUR, 1), "third": (4 * HOUR, 2)}
"""Maps a queue to its arrival time in seconds and its weight."""

STRATEGIES = {
    "final": "LessThanOrEqualToFinalShare",
    "initial": "LessThanInitialShare",
    "both": "LessThanOrEqualToFinalShare,LessThanInitialShare",
}
PREEMPTION = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
END = 8 * HOUR


def make_trace(path: Path, sizes: Sequence[int], jobs: int) -> None:
    """Writes a trace where each queue submits `jobs` jobs of random sizes together, of 0.5 to 2 hours."""
    draw = random.Random(SEED)  # noqa: S311 - Python promises this sequence on every version
    rows = [
        {
            "job_id": f"{queue}-{number:03}",
            "queue": queue,
            "submit_time": start,
            "duration": draw.randrange(HOUR // 2, 2 * HOUR),
            "request.cpu": 1000 * draw.choice(sizes),
        }
        for queue, (start, _) in ARRIVALS.items()
        for number in range(jobs)
    ]
    times = pl.col("submit_time", "duration")
    pl.DataFrame(rows).with_columns((times * 1_000_000).cast(pl.Duration("us"))).write_parquet(path)


def make_cluster(path: Path) -> None:
    """Writes a cohort that has all quota, and for each tenant a queue that has none."""
    manifests = [flavor_manifest("f"), cohort_manifest("all", "", "f", {"cpu": 1000 * CORES})]
    for queue, (_, weight) in ARRIVALS.items():
        manifest = cluster_queue_manifest(queue, "f", {"cpu": 0}, cohort="all", preemption=PREEMPTION)
        manifest["spec"]["fairSharing"] = {"weight": weight}
        manifests.append(manifest)
    path.write_text(dump_yaml(manifests), encoding="utf-8")


def study(folder: Path, *, jobs: int = 150) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Replays the scenario under every list of strategies.

    Args:
        folder: the folder for traces, manifests and runs.
        jobs: the number of jobs of each queue.

    Returns:
        The shares over time and a summary. See the module docstring.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shares, summary = [], []
    for mix, sizes in SIZES.items():
        trace = folder / f"{mix}.parquet"
        make_trace(trace, sizes, jobs)
        make_cluster(trace.with_suffix(".cluster.yaml"))
        for name, strategies in STRATEGIES.items():
            run = harness.replay(
                trace,
                plugin="fairsharing",
                label=name,
                options={"preemptionStrategies": strategies},
                until=f"{END}s",
                output=folder / "results",
            )
            held = shares_over_time(run)
            which = {"jobs": mix, "strategies": name}
            shares.append(held.select(*(pl.lit(value).alias(key) for key, value in which.items()), pl.all()))
            summary.append({**which, **figures(run, held, max(sizes))})
    return pl.concat(shares), pl.DataFrame(summary)


def shares_over_time(run: harness.Run) -> pl.DataFrame:
    """Returns each queue's share of the cohort in thousandths, plain and by weight, whenever it changes.

    `ideal` is the plain share at which the weighted shares of all queues that have begun are equal.
    """
    weights = {queue: weight for queue, (_, weight) in ARRIVALS.items()}
    comes = {queue: start for queue, (start, _) in ARRIVALS.items()}
    held = run.timeline.select(
        pl.col("time").dt.total_seconds().alias("seconds"), "queue", share=1000 * pl.col("share")
    )
    instants = held.select(pl.col("seconds").unique().sort())
    grid = instants.join(pl.DataFrame({"queue": list(ARRIVALS)}), how="cross")
    weight = pl.col("queue").replace_strict(weights, return_dtype=pl.Int64)
    here = pl.col("seconds") >= pl.col("queue").replace_strict(comes, return_dtype=pl.Int64)
    present = pl.when(here).then(weight).otherwise(0)
    return (
        grid.join(held, on=["seconds", "queue"], how="left", maintain_order="left")
        .with_columns(pl.col("share").forward_fill().over("queue").fill_null(0.0))
        .with_columns(
            weighted_share=(pl.col("share") / weight).ceil().cast(pl.Int64),
            ideal=1000 * present / present.sum().over("seconds"),
        )
    )


def figures(run: harness.Run, held: pl.DataFrame, largest: int) -> dict[str, Any]:
    """Returns how soon the shares became ideal, how close to the ideal they stayed, and what that cost.

    `*_min` is the time in minutes from a queue's arrival until the shares together differ from the ideal by
    at most half of the largest job, or null. `off` is their mean distance from the ideal after the last
    queue's arrival, in thousandths of the cohort.
    """
    off = (
        held.group_by("seconds").agg(off=(pl.col("share") - pl.col("ideal")).abs().sum() / 2).sort("seconds")
    )
    found: dict[str, Any] = {}
    for queue, (start, _) in list(ARRIVALS.items())[1:]:
        near = off.filter((pl.col("seconds") >= start) & (pl.col("off") <= 500 * largest / CORES))
        found[f"{queue}_min"] = round((near["seconds"][0] - start) / 60, 1) if near.height else None
    last = max(start for start, _ in ARRIVALS.values())
    after = off.filter(pl.col("seconds") >= last)
    spans = after["seconds"].shift(-1, fill_value=END) - after["seconds"]
    found["off"] = round(float((after["off"] * spans).sum()) / (END - last), 1)
    measured = run.metrics.filter(scope="all")
    found["preemptions"] = int(measured.filter(metric="disruption.preemptions")["value"].item())
    for name in ("allocated", "useful", "lost"):
        value = measured.filter(metric=f"utilization.{name}", resource="cpu")["value"].item()
        found[name] = round(float(value), 4)
    return found


def main() -> None:
    """Writes the study into the folder that is named on the command line."""
    folder = Path(sys.argv[1])
    shares, summary = study(folder)
    shares.write_csv(folder / "shares.csv")
    summary.write_csv(folder / "summary.csv")
    with pl.Config(tbl_cols=-1, tbl_width_chars=120):
        click.echo(str(summary))


if __name__ == "__main__":
    main()
