"""`harness report`: where it writes, and what it says when it cannot."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from report_runs import write

import harness as library


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[library.Run]:
    """Two runs of a small trace."""
    folder = tmp_path_factory.mktemp("two")
    rows = [{"submit_time": number, "queue": "q"} for number in range(8)]
    trace = write(folder / "trace.parquet", rows)
    return [library.replay(trace, label=label, output=folder / "results") for label in ("calm", "rough")]


def test_a_page_is_written_and_named(harness: Callable, folder: Path, two: list[library.Run]) -> None:
    """`report.html` unless another file is asked for; the page says the command that made it."""
    pytest.importorskip("altair", reason="charts need altair: pip install 'harness-replay[report]'")
    pytest.importorskip("vl_convert", reason="charts need vl-convert: pip install 'harness-replay[report]'")
    ended = harness("report", two[0].path)
    assert ended == (0, "report.html\n", "")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"harness report {two[0].path}" in page


def test_markdown_goes_to_stdout(harness: Callable, folder: Path, two: list[library.Run]) -> None:
    """Or to a file, whose name is printed then."""
    ended = harness("report", *(run.path for run in two), "--format", "markdown", "--baseline", "rough")
    assert ended.code == 0
    assert ended.out.startswith("# trace: rough, calm\n")
    written = harness("report", two[0].path, "--format", "markdown", "-o", "pr.md")
    assert written.out == "pr.md\n"
    assert (folder / "pr.md").read_text(encoding="utf-8").startswith("# trace: calm\n")


def test_what_is_called_markdown_is_markdown(harness: Callable, folder: Path, two: list[library.Run]) -> None:
    """Without --format the file's ending says what is written."""
    assert harness("report", two[0].path, "-o", "named.md").out == "named.md\n"
    assert (folder / "named.md").read_text(encoding="utf-8").startswith("# trace: calm\n")
    assert harness("report", two[0].path, "--interactive", "-o", "named.md").code == 2


def test_twins_that_are_kept_of_all_runs_are_what_a_report_is_about(
    harness: Callable, folder: Path, tmp_path: Path
) -> None:
    """As `replay --shake` left them; of some runs alone nobody knows, and `--shake` makes what is missing."""
    rows = [{"submit_time": 7 * number, "queue": "q", "priority": number % 2} for number in range(8)]
    trace = write(tmp_path / "trace.parquet", rows)
    fifo = ("-p", "none@fifo", "--set", "fifo.order=fifo")
    assert harness("replay", trace, "-p", "none", *fifo, "-o", tmp_path, "--shake", "2").code == 0
    runs = sorted(tmp_path.glob("trace/[a-z]*"))
    over, charts = "values: means over 2 twins", "charts show the runs themselves, not their twins"
    told = harness("report", *runs, "--format", "markdown")
    assert over in told.out
    assert charts in told.out
    assert told.err == ""
    plain = harness("report", *runs, "--format", "markdown", "--shake", "no")
    assert over not in plain.out
    assert charts not in plain.out
    harness("replay", trace, "-p", "none@strict", "--set", "blocking=strict", "-o", tmp_path)
    runs = sorted(tmp_path.glob("trace/[a-z]*"))
    assert over not in harness("report", *runs, "--format", "markdown").out
    made = harness("report", *runs, "--format", "markdown", "--shake", "2")
    assert over in made.out
    assert "shaking: 2 replays of 2 twins" in made.err


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_what_is_missing_is_named_with_the_way_to_get_it(
    harness: Callable, two: list[library.Run], monkeypatch: pytest.MonkeyPatch, folder: Path, missing: str
) -> None:
    """Markdown needs neither."""
    monkeypatch.setitem(sys.modules, missing, None)
    ended = harness("report", two[0].path)
    assert ended.code == 2
    assert "altair and vl-convert-python" in ended.err
    assert "pip install 'harness-replay[report]'" in ended.err
    assert not (folder / "report.html").exists()
    assert harness("report", two[0].path, "--format", "markdown").code == 0


def test_a_place_that_cannot_be_written_is_named(harness: Callable, two: list[library.Run]) -> None:
    """No traceback, and what to do."""
    ended = harness("report", two[0].path, "--format", "markdown", "-o", "no/such/folder.md")
    assert ended.code == 2
    assert "no/such/folder.md cannot be written: No such file or directory" in ended.err


def test_only_a_page_is_interactive(harness: Callable, two: list[library.Run]) -> None:
    """Options that contradict each other are refused before anything is read."""
    assert harness("report", two[0].path, "--interactive", "--format", "markdown").code == 2


def test_runs_that_do_not_compare_are_refused(
    harness: Callable, two: list[library.Run], tmp_path: Path
) -> None:
    """With what differs, as `compare` does."""
    trace = write(tmp_path / "other.parquet", [{"job_id": "elsewhere", "submit_time": 0, "queue": "q"}])
    other = library.replay(trace, output=tmp_path / "results")
    ended = harness("report", two[0].path, other.path)
    assert ended.code == 2
    assert "cannot be compared" in ended.err
    assert "another trace" in ended.err


@pytest.mark.parametrize("table", ["timeline", "decisions", "jobs", "stints"])
def test_a_damaged_table_names_its_run(
    harness: Callable, two: list[library.Run], tmp_path: Path, table: str
) -> None:
    """What cannot be read is an error of the input, as everywhere."""
    broken = tmp_path / "broken"
    shutil.copytree(two[0].path, broken)
    path = broken / f"{table}.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(200) + whole[204:])
    ended = harness("report", broken, "--format", "markdown")
    assert ended.code == 2
    assert f"{path} is damaged" in ended.err


def test_the_documented_section_of_a_plugin_stands_in_the_report(
    harness: Callable, install: Callable, two: list[library.Run]
) -> None:
    """The example of the page about reports works as it stands; `--no-plugin` leaves it out again."""
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    install("busy_users", example)
    arguments = ("report", *(run.path for run in two), "--format", "markdown")
    ended = harness(*arguments)
    assert ended.code == 0
    assert "## Who submits\n" in ended.out
    assert "**Jobs by user, rough**\n\n| user | jobs |\n| --- | ---: |\n| nobody | 8 |" in ended.out
    assert "section users" in harness("plugins").out
    assert "Who submits" not in harness("--no-plugin", "busy_users", *arguments).out
