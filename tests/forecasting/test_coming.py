"""What will come: whole days of the history, of the same weekday, each job at its hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
from live_worlds import MONDAY, NOON, cluster, history, queue

from harness.base.units import DAY, HOUR, SECOND
from harness.plugins import load
from harness.runs.estimates.coming_jobs import Coming
from harness.runs.estimates.history import history_of

_WORLD = cluster(queue("q", 4))


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return round(moment.timestamp()) * SECOND


def coming(folder: Path, jobs: list[tuple[str, datetime, float, int]], now: datetime | None = NOON) -> Coming:
    """What may come by a history, at a time."""
    known = history_of(history(folder, jobs), _WORLD, load().policy("kueue-classic"))
    return known.by(None if now is None else micros(now)).coming


def weeks(count: int) -> list[tuple[str, datetime, float, int]]:
    """At 06:00 and 15:00 of every day a job named after its weekday (Monday is 0) and hour."""
    days = [MONDAY - timedelta(days=day) for day in range(7 * count, 0, -1)]
    return [
        (f"{day.weekday()}at{hour}week{number // 7}", day + timedelta(hours=hour), 1, 1)
        for number, day in enumerate(days)
        for hour in (6, 15)
    ]


def test_each_future_day_is_a_day_of_the_same_weekday_with_its_hours(tmp_path: Path) -> None:
    """From Monday noon on: today's job at 15:00, then both jobs of every weekday.

    The history begins on a Monday at 06:00, which is therefore no whole day.
    """
    days = coming(tmp_path, weeks(4))
    drawn = set()
    for number in range(60):
        came = [each[0] for chunk in days.future(1, number, micros(NOON), 7 * DAY, 5) for each in chunk]
        assert [(job.id.partition("week")[0], job.submit // HOUR) for job in came][:4] == [
            ("0at15", 3),
            ("1at6", 18),
            ("1at15", 27),
            ("2at6", 42),
        ]
        assert [job.index for job in came] == list(range(5, 5 + len(came)))
        assert all(job.submit >= 0 for job in came)
        assert len({job.id for job in came}) == len(came)
        drawn.add(came[0].id.partition("+")[0])
    assert drawn == {f"0at15week{week}" for week in (1, 2, 3)}


def test_only_what_was_known_by_now_counts(tmp_path: Path) -> None:
    """Jobs that were submitted later do not come, whatever the history says; nor does the day of now."""
    later = [(f"later{day}", MONDAY + timedelta(days=day, hours=15), 1.0, 1) for day in range(9)]
    days = coming(tmp_path, weeks(2) + later)
    names = {
        each[0].id
        for number in range(20)
        for chunk in days.future(1, number, micros(NOON), 7 * DAY, 0)
        for each in chunk
    }
    assert not any(name.startswith("later") for name in names)


def test_days_that_the_history_does_not_cover_are_not_drawn(tmp_path: Path) -> None:
    """It ended ten weeks ago, on a Sunday at 15:00: no future day is empty, each has its weekday's hours."""
    past = [(name, submit - timedelta(weeks=10), hours, cpu) for name, submit, hours, cpu in weeks(4)]
    days = coming(tmp_path, past)
    for number in range(40):
        came = [each[0] for chunk in days.future(1, number, micros(NOON), 5 * DAY, 0) for each in chunk]
        names = [job.id.partition("week")[0] for job in came]
        wanted = [f"{weekday}at{hour}" for weekday in range(6) for hour in (6, 15)]
        assert names == wanted[1:]
    sunday = micros(MONDAY) // DAY + 6
    assert [sunday - day for day in days.days_like(sunday)] == [7 * 14, 7 * 13, 7 * 12]


def test_a_silence_within_the_history_is_days_without_arrivals(tmp_path: Path) -> None:
    """Known by a job after it, also one of a queue that the cluster does not have."""
    silent = weeks(1)[:4]  # until Tuesday
    for queue_of_last in ("q-jobs", "other"):
        trace = history(tmp_path, [*silent, ("last", MONDAY + timedelta(hours=1), 1, 1)])
        last = pl.col("job_id") == "last"
        other = pl.when(last).then(pl.lit(queue_of_last)).otherwise(pl.col("queue")).cast(pl.Categorical)
        trace = replace(trace, frame=trace.frame.with_columns(other.alias("queue")))
        known = history_of(trace, _WORLD, load().policy("kueue-classic")).by(micros(NOON)).coming
        (friday,) = known.days_like(micros(MONDAY) // DAY + 4)
        assert friday == micros(MONDAY) // DAY - 3
        assert known.came_on(friday) == []


def test_a_history_without_a_whole_day_is_drawn_from_as_it_is(tmp_path: Path) -> None:
    """Three hours of a Monday ten days ago, and the same where it goes over midnight."""
    for begin in (8, 22):
        since = MONDAY - timedelta(days=7) + timedelta(hours=begin)
        past = [(f"job{hour}", since + timedelta(hours=hour), 0.5, 1) for hour in range(4)]
        found = history_of(history(tmp_path, past), _WORLD, load().policy("kueue-classic"))
        known = found.by(micros(NOON)).coming
        assert not known.whole
        monday = micros(MONDAY) // DAY - 7
        assert list(known.days_like(monday + 9)) == ([monday] if begin == 8 else [monday, monday + 1])
        told = list(found.said_of_days(micros(NOON), known))
        assert told[-1] == "history: it covers no whole day, so future days are drawn from parts of days"


def test_a_weekday_that_the_history_does_not_have_is_any_day(tmp_path: Path) -> None:
    """A history of Sunday alone."""
    days = coming(tmp_path, weeks(1)[-2:], None)
    came = [each[0].id for chunk in days.future(1, 0, micros(NOON), DAY, 0) for each in chunk]
    assert [name.partition("week")[0] for name in came][:2] == ["6at15", "6at6"]


def test_only_run_times_of_jobs_that_had_ended_are_known(tmp_path: Path) -> None:
    """One ran 1 h, the other, submitted at the same time, would end after now."""
    jobs = [("short", NOON - timedelta(hours=5), 1.0, 1), ("long", NOON - timedelta(hours=5), 6.0, 1)]
    known = history_of(history(tmp_path, jobs), _WORLD, load().policy("kueue-classic"))
    assert known.by(micros(NOON)).run_times.count == 1
    assert known.by(micros(NOON + timedelta(hours=2))).run_times.count == 2


def test_the_run_time_of_a_job_that_had_not_ended_is_not_known_when_it_comes_again(tmp_path: Path) -> None:
    """It really ran 400 h and has run 66 h by noon; all that ran longer and had ended took 100 h."""
    old = [(f"old{number}", MONDAY - timedelta(days=20, hours=number), 100.0, 1) for number in range(30)]
    jobs = [*old, ("running", MONDAY - timedelta(hours=54), 400.0, 1)]
    known = history_of(history(tmp_path, jobs), _WORLD, load().policy("kueue-classic")).by(micros(NOON))
    saturday = (micros(MONDAY) // DAY) - 3
    assert [past.run_time for past in known.coming.came_on(saturday)] == [100 * HOUR]


def test_jobs_of_queues_that_the_cluster_does_not_have_are_left_out_and_counted(tmp_path: Path) -> None:
    """The jobs that are left arrive again."""
    known = load().policy("kueue-classic")
    too_large = [("large", MONDAY - timedelta(days=1), 1.0, 5), *weeks(1)]
    found = history_of(history(tmp_path, too_large), _WORLD, known)
    assert len(found.jobs) == 14
    assert "1 of 15 jobs can never start (large)" in found.notes[0]


def test_of_a_history_whose_jobs_could_never_start_only_the_run_times_are_known(tmp_path: Path) -> None:
    """The jobs ran, although their queue is gone by now."""
    ran = history(tmp_path, weeks(1), queue="gone")
    found = history_of(ran, _WORLD, load().policy("kueue-classic"))
    known = found.by(micros(NOON))
    assert known.run_times.count == 14
    assert not list(known.coming.future(1, 0, micros(NOON), 7 * DAY, 0))
    assert not list(found.said_of_days(micros(NOON), known.coming))
    assert "none of its jobs could ever start on this cluster, so no job arrives later" in found.notes[-1]
