"""Every preempted job of a Philly run, under each policy: no text has a hole, and its figures are right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from run_books import GPU, Asked, Eviction, asked_for, evictions

from harness.analysis.explanation.clock import Clock
from harness.analysis.explanation.explain import units_of
from harness.analysis.explanation.histories import Histories
from harness.analysis.explanation.history import Event, History
from harness.analysis.explanation.story import Story
from harness.base.units import format_duration
from harness.runs.run import Run

PREEMPTING = ("default-preemption", "elasticquota", "auto", "kueue-classic", "fairsharing")
POLICIES = ("none", *PREEMPTING)
ALIKE = ("auto", "fairsharing")
"""Policies whose runs are explained like those of `elasticquota` and `kueue-classic`."""
HOLES = re.compile(r"\bNone\b|\bnull\b|\bnan\b|unknown|\(\)|: ;|; ;|;$|: $|\{|\bof (queue )?[,;(]|used *[,;]")

RunOf = Callable[[str], Run]


@pytest.fixture(scope="module")
def asked(philly: Path) -> dict[str, Asked]:
    """What the trace says."""
    return asked_for(philly / "philly.parquet")


def plugins(names: Sequence[str]) -> pytest.MarkDecorator:
    """Tries a test with these policies, and with those that are alike at night only."""
    marked = [pytest.param(each, marks=pytest.mark.nightly if each in ALIKE else ()) for each in names]
    return pytest.mark.parametrize("plugin", marked)


def histories(run: Run, names: list[str]) -> Iterator[tuple[History, Story]]:
    """Jobs of a run, and what is told of them."""
    units, clock = units_of(run), Clock(run)
    for history in Histories(run, units).of(names):
        yield history, Story(history, clock, units)


def events_of(history: History) -> list[Event]:
    """Everything that happened to the job."""
    return [each for stretch in history.stretches for each in stretch.events]


def evictions_of(history: History) -> list[Event]:
    return [each for each in events_of(history) if each.what in ("preempt", "evict")]


@plugins(POLICIES)
def test_no_text_has_a_hole(plugin: str, run_of: RunOf) -> None:
    """Of jobs that were preempted or waited, folded and in full; nothing is None, null, unknown or empty.

    Every twelfth of them, others with every plugin.
    """
    run = run_of(plugin)
    rows = run.micros("jobs").collect().rows(named=True)
    names = [row["job_id"] for row in rows if row["preemptions"] or row["start_time"] != row["submit_time"]]
    assert len(names) > 100
    for history, story in histories(run, names[POLICIES.index(plugin) % 12 :: 12]):
        for text in (story.text(), story.text(everything=True)):
            for line in text.split("\n")[4:]:
                assert not HOLES.search(line), (history.job["job_id"], line)
                assert re.match(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d| {19})  \S", line), line


@plugins(PREEMPTING)
def test_evictions_are_those_of_the_books_with_their_times_and_what_they_cost(
    plugin: str, run_of: RunOf, asked: dict[str, Asked]
) -> None:
    """Recomputed from the decisions alone: when, by whom, how many pods, and the work that was lost."""
    run = run_of(plugin)
    clock = Clock(run)
    books: dict[str, dict[tuple[int, str, str], list[Eviction]]] = {}
    for each in evictions(run.path, asked):
        books.setdefault(each.victim, {}).setdefault((each.time, each.by, each.reason), []).append(each)
    assert len(books) > 30
    for history, story in histories(run, list(books)):
        name, text = history.job["job_id"], story.text(everything=True)
        told = {(event.time, event.others[0].job, event.reason): event for event in evictions_of(history)}
        assert told.keys() == books[name].keys()
        for key, rows in books[name].items():
            event, lost = told[key], sum(each.lost for each in rows)
            assert event.pods == sum(each.pods for each in rows)
            assert event.lost == lost
            assert event.lost_amounts.get(GPU, 0) == lost * asked[name].gpus
            assert (event.others[0].queue, event.others[0].priority) == (
                asked[key[1]].queue,
                asked[key[1]].priority,
            )
            begin = clock.text(event.time)
            line = next(
                line
                for line in text.split("\n")
                if line.startswith(begin) and f"preempted by job {key[1]} of" in line
            )
            assert (f"lost {format_duration(lost)} of work" in line) if lost else ("no work" in line)
        assert sum(event.lost for event in told.values()) == history.job["progress_lost"]


@plugins(PREEMPTING[1:])
def test_usage_and_quota_of_both_sides_are_those_of_the_books(
    plugin: str, run_of: RunOf, asked: dict[str, Asked], philly: Path
) -> None:
    """Right before the first victim goes; mates of a gang that are placed with it count already."""
    run = run_of(plugin)
    quotas = {
        document["metadata"]["name"]: document["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
        for document in yaml.safe_load_all((philly / "quotas.yaml").read_text())
        if document["kind"] == "ClusterQueue"
    }
    rows = {(each.time, each.victim, each.by): each for each in reversed(list(evictions(run.path, asked)))}
    checked = exactly = 0
    for history, story in histories(run, sorted({each.victim for each in rows.values()})):
        text = story.text(everything=True)
        for event in evictions_of(history):
            figures, books = event.figures, rows[event.time, history.job["job_id"], event.others[0].job]
            assert figures.queue == event.others[0].queue
            assert set(figures.usage) == {figures.queue, history.job["queue"]}
            if figures.gang:
                continue
            for queue, usage in figures.usage.items():
                nominal = quotas[queue]["nominalQuota"]
                used = sum(usage.values())
                assert books.used[queue] <= used <= books.used[queue] + books.late[queue]
                exactly += used == books.used[queue]
                assert sum(figures.quota[queue].values()) == nominal
                assert f"{queue} used {used} of {nominal} {GPU}" in text
                checked += 1
            (request,) = figures.request.values()
            preemptor = asked[event.others[0].job]
            assert request == preemptor.gpus * (
                preemptor.pods if plugin in ("kueue-classic", "fairsharing") else 1
            )
    assert checked > 100
    assert exactly > checked * 0.9


@plugins(POLICIES)
def test_who_held_what_was_short_is_what_the_books_say(
    plugin: str, run_of: RunOf, asked: dict[str, Asked]
) -> None:
    """The largest holders at the end of the instant of a refusal."""
    run = run_of(plugin)
    rows = run.micros("decisions").collect().rows(named=True)
    whole = not any(row["action"] == "bind" for row in rows)
    takes = "admit" if whole else "bind"
    held = dict.fromkeys(sorted({each.queue for each in asked.values()}), 0)
    at: dict[int, dict[str, int]] = {}
    for row in rows:
        change = {takes: 1, "gone": -1, "finish": -1}.get(row["action"], 0)
        held[row["queue"]] += change * row["pods"] * asked[row["job_id"]].gpus
        at[row["time"]] = dict(held)
    refused = sorted({row["job_id"] for row in rows if row["action"] == "refuse"})[:60]
    assert refused
    for history, _ in histories(run, refused):
        for event in (each for each in events_of(history) if each.what == "refuse" and each.figures.short):
            books = sorted(((amount, queue) for queue, amount in at[event.time].items() if amount))[::-1]
            assert [amount for _, amount in event.holders[GPU]] == [amount for amount, _ in books[:3]]
            assert all(at[event.time][queue] == amount for queue, amount in event.holders[GPU])


def test_json_says_the_same_as_the_text(run_of: RunOf) -> None:
    """Each event has its sentence; nothing is folded; it is plain JSON."""
    run = run_of("fairsharing")
    most = max(run.jobs.iter_rows(named=True), key=lambda row: row["preemptions"])
    ((_, story),) = histories(run, [most["job_id"]])
    data = json.loads(json.dumps(story.to_json()))
    events = [event for stretch in data["chapters"] for event in stretch["events"]]
    assert sum(event["what"] == "preempt" for event in events) == most["preemptions"]
    lines = story.text(everything=True)
    assert all(event["text"] in lines for event in events if event["what"] != "gone")


def test_a_loop_is_folded_with_counts_that_add_up(run_of: RunOf) -> None:
    """A job preempted many times takes few lines; what is told and what is counted is all there was."""
    run = run_of("fairsharing")
    most = max(run.jobs.iter_rows(named=True), key=lambda row: row["preemptions"])
    assert most["preemptions"] > 20
    ((_, story),) = histories(run, [most["job_id"]])
    lines = story.text().split("\n")
    assert len(lines) < 50 < len(story.text(everything=True).split("\n"))
    told = sum("  preempted by " in line for line in lines)
    folded = [re.search(r"this repeats ([\d,]+) times", line) for line in lines]
    assert told + sum(int(found[1]) for found in folded if found) == most["preemptions"]
