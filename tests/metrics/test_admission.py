"""The time from admission to progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from small_clusters import queues

Measured = Callable[..., Any]


def test_admission_to_start_is_what_an_admitted_job_waits_for_nodes(measured: Measured) -> None:
    """The quota takes both jobs at once, two nodes of 4 cores one after the other: 0 and 10 s."""
    job = {"queue": "a", "pods": 2, "gang": True, "request.cpu": 4000, "duration": 10}
    where = queues({"a": {"cpu": "16"}}, nodes=2)
    value = measured(job, job, cluster=where, plugin="kueue-classic")
    assert value("wait.admission_to_start.mean") == 5
    assert value("wait.admission_to_start.max") == 10


def test_without_admission_there_is_no_such_time(measured: Measured) -> None:
    """kube-scheduler admits nothing."""
    value = measured({}, cluster=queues({"default": {"cpu": "4"}}, nodes=1), plugin="default-preemption")
    assert value("wait.admission_to_start.mean") is None
