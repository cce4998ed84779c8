"""Benchmarks that nobody runs for weeks still run."""

from __future__ import annotations

import pytest
from benchmarks import backlog


@pytest.mark.parametrize("policy", backlog.POLICIES)
def test_what_a_job_costs_is_counted_until_enough_have_ended(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay stops there, and what happens after it is not counted."""
    monkeypatch.setattr(backlog, "_SKIPPED", 5)
    monkeypatch.setattr(backlog, "_FINISHED", 20)
    assert 0 < backlog.cost(policy, 50) < 1e6
