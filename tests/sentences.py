"""Takes the sentences of `explain` apart: whatever they say stands in the record, or follows from it.

`contradictions` goes through the events of jobs; `silent` looks for long waits without a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from harness.analysis.explanation.clock import Clock
from harness.analysis.explanation.explain import units_of
from harness.analysis.explanation.histories import Histories
from harness.analysis.explanation.history import PREEMPTS, Event, History
from harness.analysis.explanation.story import Story
from harness.analysis.explanation.vocabulary import Units
from harness.base.units import MINUTE
from harness.runs.run import Run

_NUMBER = re.compile(r"(?<![\w./-])\d+(?:,\d{3})*(?:\.\d+)?(?:[kMGTPEmun]i?)?(?![\w/-])")
_RECORDED = ("request", "short", "usage", "nominated")
_JOB = re.compile(r"\bjob ([^\s;:,()]+)")


def silent(run: Run, least: int = 10 * MINUTE) -> list[str]:
    """The jobs that waited so long for their first start, although `explain` gives no reason for the wait.

    Histories are read only for jobs without a refusal of their own until then.
    """
    histories = Histories(run, units_of(run))
    began = pl.min_horizontal("admitted_time", "start_time").fill_null(run.window.end)
    refusals = run.micros("decisions").filter(pl.col("action").is_in(["refuse", "reject"]))
    refused = refusals.group_by("job_id").agg(refused=pl.col("time").min()).collect()
    waited = (
        histories.jobs.filter(began - pl.col("submit_time") > least)
        .join(refused, on="job_id", how="left", maintain_order="left")
        .filter(pl.col("refused").is_null() | (pl.col("refused") > began))
    )
    return [
        history.job["job_id"]
        for history in histories.of(list(waited["job_id"]))
        if _first_wait(history, run) > least and history.behind is None and not _is_told(history)
    ]


def _first_wait(history: History, run: Run) -> int:
    """How long a job waited before it got anything; 0 for one that was rejected."""
    first = history.stretches[0]
    if history.job["state"] == "rejected" or first.since is None:
        return 0
    return (run.window.end if first.start is None else first.start) - first.since


def _is_told(history: History) -> bool:
    return any(event.what in ("refuse", "reject", PREEMPTS) for event in history.stretches[0].events)


def contradictions(run: Run, most: int | None = None) -> Iterator[str]:
    """What sentences about refusals and preemptions say that the record does not.

    Args:
        run: the run.
        most: of how many jobs that were refused something, or preempted others; None for all.
    """
    clock, units = Clock(run), units_of(run)
    histories = Histories(run, units)
    refused = run.decisions.filter(run.decisions["action"] == "refuse")["job_id"].unique(maintain_order=True)
    preempting = run.decisions["by"].drop_nulls().unique(maintain_order=True)
    names = list(dict.fromkeys([*refused, *preempting]))[:most]
    known = set(histories.names)
    for history in histories.of(names):
        told = Story(history, clock, units).to_json()
        plain = [event for chapter in told["chapters"] for event in chapter["events"]]
        events = [event for stretch in history.stretches for event in stretch.events]
        for event, said in zip(events, plain, strict=True):
            if event.what in ("refuse", PREEMPTS):
                for fault in _faults(event, said, units, clock, known):
                    yield f"{history.job['job_id']}: {fault} in {said['text']!r}"


def _faults(
    event: Event, said: Mapping[str, Any], units: Units, clock: Clock, known: set[str]
) -> Iterator[str]:
    """Numbers that are not among the fields, names that do not exist, and amounts that cannot be."""
    text, figures = said["text"], said.get("figures", {})
    for name in _JOB.findall(text):
        if name not in known:
            yield f"no job {name!r}"
    rest = text
    if event.as_at is not None:
        rest = rest.replace(clock.text(event.as_at), "")
    for quoted in sorted(_texts(said), key=len, reverse=True):
        rest = re.sub(
            rf"(?<!\d)(?<!\d[,.]){re.escape(quoted)}(?!\d|[,.]\d)", " ", rest
        )  # a job may be called 62
    allowed = set(_numbers(event, said, units))
    for number in _NUMBER.findall(rest):
        if number not in allowed:
            yield f"{number} is nowhere"
    request, nominated = figures.get("request", {}), figures.get("nominated", {})
    for label, amount in figures.get("short", {}).items():
        if label in request and amount > request[label] + nominated.get(label, 0):
            yield f"more {label} is short than is asked for"
    for name, amounts in figures.get("holders", {}).items():
        for label, amount in amounts.items():
            if name in figures["usage"] and figures["usage"][name][label] != amount:
                yield f"{name} holds {amount} of {label} and uses something else"
    if figures.get("candidate"):
        names = list(figures["shares"])
        if len(names) != 2:
            yield f"shares of {names}"


def _texts(value: Any) -> Iterator[str]:
    """All texts and names of an event, so that numbers within them are none of a sentence's own."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key != "text":
                yield from (key, *_texts(each))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str) and value and not re.fullmatch(r"[\d.,]+", value):
        yield value


def _numbers(event: Event, said: Mapping[str, Any], units: Units) -> Iterator[str]:
    """All numbers that an event may say, as they are written."""
    figures = said.get("figures", {})
    yield from _plain(said)
    tables: list[Mapping[str, int]] = [
        figures.get(name, {}) for name in ("request", "short", "nominated", "most_free")
    ]
    for name in ("usage", "quota", "most", "runtime", "taken", "holders", "ahead"):
        tables += figures.get(name, {}).values()
    tables += figures.get("pool", ("",))[1:]
    for amounts in tables:
        for label, amount in amounts.items():
            yield from _forms(label, amount, units)
    for label, held in said.get("holders", {}).items():
        for _, amount in held:
            yield units.amount(label, amount)
    own = figures.get("usage", {}).get(figures.get("queue"), {})
    for label in figures.get("borrows", ()):
        yield from _forms(label, own.get(label, 0) + figures["request"][label], units)
        yield units.amount(label, 0)  # of a quota of which there is none
    yield from (units.amount(label, 0) for label in figures.get("request", {}))  # nothing of it is used
    yield f"{len(event.others) - 3:,}"
    for name in ("ahead", "waits_for"):
        yield f"{len(figures.get(name, {})) - 3:,}"
    yield f"{sum(len(other.shares) for other in event.others) - 3:,}"


def _forms(label: str, amount: int, units: Units) -> Iterator[str]:
    """The forms of an amount: cores are in millicores beside an amount that is no whole number of cores."""
    yield from (units.amount(label, amount), units.alike(label, amount, 1)[0])


def _plain(value: Any) -> Iterator[str]:
    """Every number of an event's fields."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _plain(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _plain(each)
    elif isinstance(value, int | float):
        yield f"{value:,}"
        yield str(value)
    elif isinstance(value, str) and re.fullmatch(r"[\d.,]+", value):
        yield value


def unrecorded(run: Run) -> Iterator[str]:
    """Figures of refusals, as `explain --json` has them, that no decision of the job has."""
    units = units_of(run)
    histories = Histories(run, units)
    refusals = run.decisions.filter(run.decisions["action"] == "refuse")
    details: dict[str, dict[str, None]] = {}
    for job, detail in refusals.select("job_id", "detail").iter_rows():
        details.setdefault(job, {})[detail or "{}"] = None
    for history in histories.of(list(details)):
        recorded = [json.loads(detail) for detail in details[history.job["job_id"]]]
        known = {field: {str(each.get(field)) for each in recorded} for field in _RECORDED}
        for event in _refusals(history.stretches):
            for field in _RECORDED:
                value = getattr(event.figures, field)
                if value and str(value) not in known[field]:
                    yield f"{history.job['job_id']}: {field} {value}"


def _refusals(stretches: Iterable[Any]) -> Iterator[Event]:
    for stretch in stretches:
        yield from (event for event in stretch.events if event.what == "refuse")
