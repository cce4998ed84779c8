"""EASY backfilling of CTC SP2's log, against what others published of it, and of SDSC Blue's."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.studies.reproduced.logs import BLUE, CTC, easy

LOGS = Path(__file__).parents[2] / "shared/traces"
PUBLISHED = 25_526.80
"""Mean flow time, seconds."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ties", "flow", "slowdown", "within"),
    [
        ("submissions-first", 25_528.93, 49.359, 0.001),
        ("ends-first", 25_472.89, 49.190, 0.003),
        ("together", 25_197.21, 48.837, 0.014),
    ],
)
def test_easy_on_ctc_sp2_is_as_published(ties: str, flow: float, slowdown: float, within: float) -> None:
    """77,199 jobs that ran and asked for a time, cut at it, on 338 processors."""
    try:
        log = CTC.among([LOGS])
    except InputError:
        pytest.skip("the log is not part of the repository")
    assert easy(log, 338, ties=ties) == (77_199, flow, slowdown)
    assert abs(flow / PUBLISHED - 1) < within


@pytest.mark.slow
def test_easy_on_sdsc_blue_replays_all_its_jobs() -> None:
    """232,536 jobs on 1,152 processors; there is no published figure to hold it against."""
    try:
        log = BLUE.among([LOGS])
    except InputError:
        pytest.skip("the log is not part of the repository")
    assert easy(log, 1_152) == (232_536, 12_022.60, 37.631)
