"""Golden runs: whole schedules that were computed elsewhere, and that ours must equal job by job."""

from __future__ import annotations

from harness.studies.reproduced import accasim


def test_strict_fifo_starts_every_job_when_accasim_does() -> None:
    """All 5,000 start times equal AccaSim's, to the second; mean waits of 5,000 and 20,000 jobs, too."""
    rows = accasim.rows()
    assert [row.theirs for row in rows] == ["5,000", "12,108.89", "11,907.20"]
    assert [row.difference for row in rows] == ["none"] * 3
