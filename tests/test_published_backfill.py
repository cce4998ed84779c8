"""EASY backfilling of CTC SP2's log, against what others published of it, and of SDSC Blue's."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.studies.reproduced.logs import CTC, easy

LOGS = Path(__file__).parents[2] / "shared/traces"
PAGE = Path(__file__).parents[1] / "docs" / "backfill.md"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "figures"),
    [
        ("submissions-first", {}, (25_526.80, 43_157.10, 49.571)),
        ("together", {"ties": "together"}, (25_197.21, 42_646.71, 48.837)),
        ("perfect predictions", {"estimate": "actual"}, (24_835.92, 41_411.40, 37.165)),
    ],
)
def test_easy_on_ctc_sp2_is_as_published(
    name: str, options: dict[str, str], figures: tuple[float, float, float]
) -> None:
    """77,199 jobs that ran and asked for a time, cut at it; all but `together` are figures of predictsim."""
    try:
        log = CTC.among([LOGS])
    except InputError:
        pytest.skip("the log is not part of the repository")
    assert easy(log, CTC, **options) == (77_199, *figures)


def test_the_page_of_backfilling_has_the_figures_of_published_results() -> None:
    """Mean flow times and slowdowns that both pages name are the same."""
    reproduced = (PAGE.parent / "reproduced.md").read_text(encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    cells = [line.split("|") for line in page.splitlines() if line.count(" s |") == 1]
    figures = [cell.strip().removesuffix(" s") for line in cells for cell in line[2:4]]
    assert len(figures) == 16
    assert [each for each in figures if each not in reproduced] == ["25,197.21", "48.837"]
