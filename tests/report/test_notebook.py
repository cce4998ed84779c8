"""The example notebooks run from beginning to end; what is committed is small and names no machine."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_environment import LONG

ROOT = Path(__file__).parents[2]
EXAMPLES = Path("docs", "examples")
ANSWER = (
    r"the distance from fair shares by -\d+%",
    r"(?s)If it resumes, .* 0.0% is thrown away instead of 0.0%",
)
NOTEBOOKS = ("fair-sharing.ipynb", "weights.ipynb")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of Jupyter's own
def test_the_notebook_about_fair_sharing_answers_its_question(tmp_path: Path) -> None:
    """What it says of fair shares and of lost work."""
    answer = carried_out("fair-sharing.ipynb", tmp_path)
    assert all(re.search(each, answer) for each in ANSWER)


def test_the_notebook_about_fair_sharing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of its cells, without a kernel and on 22 days; its committed answer is as above."""
    nbformat = pytest.importorskip("nbformat", reason="no notebook: pip install 'harness-replay[notebook]'")
    cells = [
        each
        for each in nbformat.read(ROOT / EXAMPLES / "fair-sharing.ipynb", as_version=4).cells
        if each.cell_type == "code"
    ]
    committed = "".join(each.text for each in cells[-1].outputs)
    assert all(re.search(each, committed) for each in ANSWER)
    (tmp_path / "traces").mkdir()
    for path in (ROOT / "traces").glob("philly.*"):
        shutil.copy(path, tmp_path / "traces")
    (tmp_path / EXAMPLES).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / EXAMPLES)
    names: dict[str, Any] = {}
    for cell in cells:
        exec(cell.source.replace('until="28d"', 'until="22d"'), names)
    assert "If it resumes, " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_notebook_about_weights_answers_its_question(tmp_path: Path) -> None:
    """What is gained on the weeks of the search is not gained on those that were held out."""
    pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    answer = carried_out("weights.ipynb", tmp_path)
    assert re.search(r"mean wait: \+\d+\.\d% gained on the weeks of the search, -\d", answer)
    assert "keep the weights" in answer


def carried_out(name: str, folder: Path) -> str:
    """The last answer of a notebook, in a copy of the checkout; every committed output is there again."""
    nbformat = pytest.importorskip("nbformat", reason="no notebook: pip install 'harness-replay[notebook]'")
    client = pytest.importorskip("nbclient", reason="no notebook: pip install 'harness-replay[notebook]'")
    pytest.importorskip("ipykernel", reason="no notebook: pip install 'harness-replay[notebook]'")
    committed = nbformat.read(ROOT / EXAMPLES / name, as_version=4)
    shutil.copytree(ROOT / EXAMPLES, folder / EXAMPLES)
    (folder / "traces").mkdir()
    for path in (ROOT / "traces").glob("philly.*"):
        shutil.copy(path, folder / "traces")
    fresh = nbformat.from_dict(committed)
    client.NotebookClient(
        fresh,
        timeout=3000,
        startup_timeout=LONG,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder / EXAMPLES)}},
    ).execute()
    for before, now in zip(committed.cells, fresh.cells, strict=True):
        if before.cell_type == "code":
            assert outputs(now) == outputs(before)
    last = [cell for cell in fresh.cells if cell.cell_type == "code"][-1]
    return "".join(each.text for each in last.outputs)


def outputs(cell: Any) -> set[str]:
    """The kinds of what a cell gave; what it prints comes in one piece or in several."""
    return {each.output_type for each in cell.outputs}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_committed_notebook_is_small_and_plain(name: str) -> None:
    """Run from beginning to end, no pictures, no paths, nothing to complain about."""
    text = (ROOT / EXAMPLES / name).read_text(encoding="utf-8")
    assert len(text) < 60_000
    assert not re.search(r"/(tmp|home|root|work|Users|mnt)/", text)
    assert "image/png" not in text
    assert "Traceback" not in text
    assert "stderr" not in text
    counts = [int(count) for count in re.findall(r'"execution_count": (\d+),\n   "(?:id|metadata)', text)]
    assert counts == list(range(1, len(counts) + 1))
    assert counts
