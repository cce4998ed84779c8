"""`harness reproduce`: published results beside ours, with files that are checked by their sums."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.text import aligned
from harness.studies.reproduced.case import Results, Row, markdown, text, to_json
from harness.studies.reproduced.cases import CASES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduced.md"
LOGS = ROOT.parent / "shared" / "traces"


@pytest.fixture(scope="module")
def free() -> Results:
    """The results that need no file."""
    return {name: case.rows() for name, case in CASES.items() if not case.sources}


def test_results_that_need_no_file_are_those_of_the_page(free: Results) -> None:
    """AccaSim, Kubernetes' design and Kueue's examples: each line of the table is on the page."""
    assert list(free) == ["accasim-hpc2n", "kubernetes-preemption", "kueue-fair-sharing"]
    assert markdown(free) in PAGE.read_text(encoding="utf-8")


def test_the_command_prints_the_table_of_a_result(harness: Callable, free: Results) -> None:
    """By its name."""
    name = "kueue-fair-sharing"
    ended = harness("reproduce", name)
    assert ended.code == 0
    assert ended.out == f"{text({name: free[name]})}\n"


def test_strict_fifo_starts_every_job_when_accasim_does(free: Results) -> None:
    """All 5,000 start times equal AccaSim's, to the second; mean waits of 5,000 and 20,000 jobs, too."""
    rows = free["accasim-hpc2n"]
    assert [row.theirs for row in rows] == ["5,000", "12,108.89", "11,907.20"]
    assert [row.difference for row in rows] == ["none"] * 3


@pytest.mark.slow
def test_all_results_are_those_of_the_page(harness: Callable) -> None:
    """The page has the whole table of `harness reproduce --all`, as the command makes it."""
    if not LOGS.is_dir():
        pytest.skip("the logs are not part of the repository")
    ended = harness("reproduce", "--all", "--data", str(LOGS), "--format", "markdown")
    assert ended.code == 0
    assert ended.out in PAGE.read_text(encoding="utf-8")


def test_every_difference_has_a_reason(free: Results) -> None:
    """And every figure without a published value."""
    for row in (row for rows in free.values() for row in rows):
        assert row.difference == "none" or row.reason, row


def test_the_list_has_every_result_and_its_files(harness: Callable) -> None:
    """Names, and the files that do not come with harness; of many the first one, and where they are."""
    listed = harness("reproduce", "--list").out
    for case in CASES.values():
        assert case.name in listed
        assert all(source.name in listed for source in case.sources[:1])
    assert "17 more of https://github.com/alibaba/clusterdata" in listed


def test_a_missing_file_says_where_it_is_had(harness: Callable) -> None:
    """By its name; `--all` leaves the result out and goes on."""
    ended = harness("reproduce", "easy-ctc")
    assert ended.code == 2
    assert "CTC-SP2-1996-3.1-cln.swf is needed" in ended.err
    assert "https://" in ended.err


def test_another_file_of_the_name_is_refused(harness: Callable, folder: Path) -> None:
    """Its sum decides, given by its path or in a folder."""
    (folder / "CTC-SP2-1996-3.1-cln.swf.gz").write_bytes(b"another log")
    for path in (".", "CTC-SP2-1996-3.1-cln.swf.gz"):
        ended = harness("reproduce", "easy-ctc", "--data", path)
        assert ended.code == 2
        assert "differs from the file that the published result used" in ended.err
        assert "--data" in ended.err


@pytest.mark.parametrize("line", [[], ["--list", "--all"], ["--all", "easy-ctc"], ["easy-tcc"]])
def test_one_thing_is_asked_for(line: list[str], harness: Callable) -> None:
    """Names, the list or all; a mistyped name gets a hint."""
    ended = harness("reproduce", *line)
    assert ended.code == 2
    assert "easy-ctc" in ended.err or "--list" in ended.err


def test_a_difference_is_relative_or_named() -> None:
    """Numbers and means differ in percent; texts are other; without a published value there is none."""
    rows = [Row("f", "2,000", "2,001.00"), Row("f", "a", "b"), Row("f", "", "1"), Row("f", "a", "a")]
    assert [row.difference for row in rows] == ["+0.05 %", "other", "-", "none"]
    assert Row("f", "95.00 ± 0.10", "95.95 ± 0.20").difference == "+1.00 %"
    assert json.loads(to_json({"x": rows}))["results"]["x"][0]["difference"] == "+0.05 %"
    assert text({"x": rows[3:]}) == aligned(
        [["x", "theirs", "ours", "difference"], ["f", "a", "a", "none"]], left=(0,)
    )
