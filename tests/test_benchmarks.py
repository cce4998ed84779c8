"""Benchmarks that nobody runs for weeks still run."""

from __future__ import annotations

import pytest
from benchmarks import backlog, idle_time, instant


@pytest.mark.parametrize("policy", backlog.POLICIES)
def test_what_a_job_costs_is_counted_until_enough_have_ended(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay stops there, and what happens after it is not counted."""
    monkeypatch.setattr(backlog, "_SKIPPED", 5)
    monkeypatch.setattr(backlog, "_FINISHED", 20)
    assert 0 < backlog.cost(policy, 50) < 1e6


@pytest.mark.parametrize("policy", backlog.POLICIES)
def test_a_century_of_waiting_is_replayed_to_its_end(policy: str) -> None:
    """What it takes is what is measured."""
    benchmark = idle_time.IdleTime()
    benchmark.setup(policy, 100)
    assert benchmark.track_cpu(policy, 100) > 0


@pytest.mark.parametrize("policy", instant.POLICIES)
def test_a_question_of_one_instant_is_answered(policy: str) -> None:
    """What it takes is what is measured."""
    benchmark = instant.Instant()
    benchmark.setup(2, True, policy, workloads=20)
    assert benchmark.track_cpu(2, True, policy) > 0
    assert benchmark.track_cpu(2, False, policy) > 0
