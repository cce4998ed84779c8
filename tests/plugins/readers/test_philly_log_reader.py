"""Philly's whole log: attempts are restarts, and what the log does not know."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
    """An attempt with so many GPUs on each of its machines."""
    detail = [
        {"ip": f"m{number}", "gpus": [f"gpu{gpu}" for gpu in range(count)]}
        for number, count in enumerate(gpus)
    ]
    return {"start_time": start, "end_time": end, "detail": detail}


FIRST = attempt("2017-10-07 01:12:09", "2017-10-07 01:13:23", 8)
SECOND = attempt("2017-10-07 01:13:30", "2017-10-07 03:13:30", 8, 8)


def job(*attempts: dict[str, Any], number: int = 1, **fields: Any) -> dict[str, Any]:
    """An entry as the log's description has it."""
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": f"application_1506638472019_{number}",
        "attempts": list(attempts),
        "submitted_time": "2017-10-07 01:11:39",
        "user": "ce2f4c",
        **fields,
    }


def test_a_restarted_job_runs_as_long_as_all_its_attempts(read_text: Callable) -> None:
    """Or as long as the last one; the restarts are counted."""
    text = json.dumps([job(FIRST, SECOND)])
    trace = read_text(text, name="cluster_job_log")
    assert trace.reader == "philly-log"
    (row,) = trace.frame.to_dicts()
    assert row["duration"] == timedelta(hours=2, seconds=74)
    assert (row["attempts"], row["status"], row["user"], row["queue"]) == (2, "Pass", "ce2f4c", "ee9e8c")
    assert (row["pods"], row["request.nvidia.com/gpu"], row["gang"]) == (2, 8, True)
    assert row["submit_time"] == datetime(2017, 10, 7, 1, 11, 39)
    assert row["recorded_start"] == datetime(2017, 10, 7, 1, 12, 9)
    assert row["recorded_end"] == datetime(2017, 10, 7, 3, 13, 30)
    assert any("1 job was restarted, once in total" in note for note in trace.notes)
    assert read_text(text, attempts="last").frame["duration"][0] == timedelta(hours=2)


def test_jobs_without_a_known_run_are_left_out_and_counted(read_text: Callable) -> None:
    """Never attempted, still running, or without a start; an earlier attempt may lack its times."""
    trace = read_text(
        json.dumps(
            [
                job(attempt(None, None, 8), SECOND, number=1),
                job(number=2),
                job(FIRST, attempt("2017-10-07 01:13:30", "None", 8), number=3),
                job(attempt("", "2017-10-07 01:13:23", 8), number=4),
                job(attempt("2017-10-07 01:12:09", "2017-10-07 01:13:23"), number=5),
                job(FIRST, number=6, submitted_time="None"),
                job(attempt("2017-10-07 01:13:23", "2017-10-07 01:12:09", 8), SECOND, number=7),
            ]
        )
    )
    assert trace.frame["job_id"].to_list() == ["application_1506638472019_1"]
    assert trace.left_out == {
        "no attempt to run the job is recorded": 1,
        "was still running when the log was taken (its last attempt has no end)": 1,
        "its last attempt has no start": 1,
        "no GPUs are recorded": 1,
        "submit time unknown": 1,
        "an attempt ended before it started": 1,
    }
    assert "1 attempt has no start or no end and are not counted" in trace.notes
    assert trace.rows_read == trace.frame.height + sum(trace.left_out.values())


def test_faults_name_the_job_and_the_field(faults_of_text: Callable) -> None:
    """All at once."""
    entries = [job(FIRST, submitted_time="yesterday"), job(FIRST, vc=None), job(FIRST, attempts="two"), 7]
    assert faults_of_text(json.dumps(entries), reader="philly-log") == [
        "job 1: submitted_time: 'yesterday' is not a time such as 2017-10-07 01:12:09",
        "job 2: vc: is missing",
        "job 3: attempts: must be a list, not 'two'",
        "job 4: must be a mapping of names to values, not 7",
        "job 4: jobid: is missing",
        "job 4: vc: is missing",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [("{}", "is not a JSON list of jobs"), ("[", "line 1: is not JSON: Expecting value (column 2)")],
)
def test_what_is_no_log_is_refused(faults_of_text: Callable, text: str, message: str) -> None:
    """With the line where there is one."""
    assert faults_of_text(text, reader="philly-log") == [message]
