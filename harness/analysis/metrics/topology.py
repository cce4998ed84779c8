"""Measures across how many topology domains jobs are spread, from the details of admissions.

The metrics of spread cover only jobs with several pods that were placed in a topology. The metrics of waits
cover all jobs. A run has none of these metrics if no decision mentions a place in a topology.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from harness.base.units import SECOND
from harness.plugins.measurement import MEAN, SHARE, Measurement, Window
from harness.runs.run import Run

_HOSTNAME = "hostname"
_SAYS = {"placed": '"spans":{', "unplaced": '"unplaced":true', "was": '"lacks":"place"', "is": '"short":{}'}
"""Maps each fact about a decision to the text by which it is recognized in the decision's details."""


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the number of domains per job, the share of jobs in several domains, and waits for domains."""
    if not _any_answers(run, window):
        return
    answers = _answers(run, window)
    placed = bool(answers["placed"].any())
    yield from _waits(answers, window)
    admissions = _admissions(run, window) if placed else pl.DataFrame()
    if admissions.is_empty():
        return
    levels = [name for name in admissions.columns if name not in ("time", "job", "pods")]
    last = admissions.unique("job", keep="last", maintain_order=True)
    hours = _hours(run, window, admissions)
    # Each domain of a level lies within one domain of a coarser level, so a job spans the most domains on its
    # finest level.
    coarser = [level for level in levels if level != _HOSTNAME]
    spread = pl.coalesce(*([pl.max_horizontal(coarser)] if coarser else []), *levels)
    yield Measurement("topology.domains_per_job", _mean(last.select(spread).to_series()), MEAN, "lower")
    for level in levels:
        name = f"topology.cross_{level}"
        yield Measurement(name, _mean((last[level] > 1).cast(pl.Float64)), SHARE, "lower")
        known = hours.drop_nulls(level)
        total, across = int(known["held"].sum()), int(known.filter(pl.col(level) > 1)["held"].sum())
        share = across / total if total else None
        yield Measurement(f"{name}.pod_hours", share, SHARE, "lower")


def _any_answers(run: Run, window: Window) -> bool:
    """Returns True if any decision mentions a place in a topology, which is rare."""
    detail = pl.col("detail").cast(pl.String)
    says = [detail.str.contains(_SAYS[name], literal=True) for name in ("placed", "unplaced")]
    found = run.micros("decisions").filter(pl.any_horizontal(says) & _within(window)).select("job")
    return not found.head(1).collect().is_empty()


def _within(window: Window) -> pl.Expr:
    return pl.col("action").is_in(["refuse", "admit"]) & (pl.col("time") <= window.end)


def _answers(run: Run, window: Window) -> pl.DataFrame:
    """Returns refusals and admissions, and what each of them says about a place in a topology.

    The columns include `time`, `job` and `action`. The flag `placed` is true if an admission names domains,
    and the flag `unplaced` is true if a decision says that pods have no place. The flag `alone` is true if
    only a place was missing. In that case, quota was available for all pods, either when the head was
    considered or after its cycle.
    """
    detail = pl.col("detail").cast(pl.String)
    said = {
        name: detail.str.contains(text, literal=True).fill_null(value=False) for name, text in _SAYS.items()
    }
    found = [
        batch.filter(_within(window)).select("time", "job", "action", **said)
        for batch in run.batches("decisions", ("time", "job", "action", "detail"))
    ]
    return pl.concat(found).with_columns(alone=pl.col("was") | pl.col("is"))


def _waits(rows: pl.DataFrame, window: Window) -> Iterator[Measurement]:
    """Yields how many jobs were refused only because no place was free, and how long they then waited."""
    admissions = (
        rows.filter(pl.col("action") == "admit")
        .select("job", admitted="time")
        .with_columns(time=pl.col("admitted"))
    )
    refused = (
        rows.filter((pl.col("action") == "refuse") & pl.col("unplaced") & pl.col("alone"))
        .select("job", "time")
        .sort("time")
        .join_asof(admissions.sort("time"), on="time", by="job", strategy="forward", check_sortedness=False)
        .with_columns(wait=pl.col("admitted").fill_null(window.end) - pl.col("time"))
        # If a job is refused several times before it is admitted, a single wait counts, from the first
        # refusal on.
        .group_by("job", "admitted", maintain_order=True)
        .agg(pl.col("wait").max())
    )
    jobs = refused["job"].n_unique()
    yield Measurement("topology.no_place", float(jobs), "count", "lower")
    waited = int(refused["wait"].sum()) / jobs / SECOND if jobs else None
    yield Measurement("topology.no_place.wait", waited, "s", "lower")


def _admissions(run: Run, window: Window) -> pl.DataFrame:
    """Returns, in order, the admissions of jobs with several pods to a topology.

    The columns are `time`, `job`, `pods`, and the number of domains for each level. A level has the name that
    follows the `/` in its label.
    """
    rows = (
        run.micros("decisions")
        .filter((pl.col("action") == "admit") & (pl.col("time") <= window.end))
        .select("time", "job", pl.col("detail").cast(pl.String))
        .filter(pl.col("detail").str.contains(_SAYS["placed"], literal=True))
        .collect()
    )
    pods = run.micros("jobs").select("pods").collect()["pods"]
    rows = rows.with_columns(pods=pods.gather(rows["job"])).filter(pl.col("pods") > 1)
    told = {text: _spans(json.loads(text)) for text in rows["detail"].unique(maintain_order=True)}
    rows = rows.filter(pl.Series([bool(told[text]) for text in rows["detail"]], dtype=pl.Boolean))
    levels = dict.fromkeys(level for spans in told.values() for level in spans)
    return rows.select(
        "time",
        "job",
        "pods",
        *(
            pl.Series(level, [told[text].get(level) for text in rows["detail"]], dtype=pl.Int64)
            for level in levels
        ),
    )


def _spans(detail: Mapping[str, Any]) -> dict[str, int]:
    """Returns how many domains of each level an admission spans; the most if labels share an ending."""
    found: dict[str, int] = {}
    for label, count in detail.get("spans", {}).items():
        level = label.rpartition("/")[2]
        found[level] = max(count, found.get(level, 0))
    return found


def _hours(run: Run, window: Window, admissions: pl.DataFrame) -> pl.DataFrame:
    """Returns the progress of the admitted jobs as `held`, in pod-microseconds, with the last admission."""
    progress = (
        run.micros("stints")
        .filter((pl.col("state") == "progress") & (pl.col("start") < window.end))
        .filter(pl.col("job").is_in(admissions["job"].unique().implode()))
        .select(
            "job",
            "start",
            held=pl.col("pods") * (pl.min_horizontal("end", pl.lit(window.end)) - pl.col("start")),
        )
        .collect()
        .sort("start")
    )
    return progress.join_asof(
        admissions.drop("pods").sort("time"),
        left_on="start",
        right_on="time",
        by="job",
        strategy="backward",
        check_sortedness=False,
    )


def _mean(values: pl.Series) -> float | None:
    known = values.drop_nulls()
    return None if known.is_empty() else float(known.sum()) / len(known)
