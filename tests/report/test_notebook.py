"""The example notebook runs from beginning to end; what is committed of it is small and names no machine."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = Path("docs", "examples", "fair-sharing.ipynb")


@pytest.mark.early
@pytest.mark.filterwarnings("default")  # of Jupyter's own
def test_the_notebook_answers_its_question(tmp_path: Path) -> None:
    """In a copy of the checkout's folders; every cell that is committed with an output has one again."""
    nbformat = pytest.importorskip("nbformat", reason="no notebook: pip install 'harness-replay[notebook]'")
    client = pytest.importorskip("nbclient", reason="no notebook: pip install 'harness-replay[notebook]'")
    pytest.importorskip("ipykernel", reason="no notebook: pip install 'harness-replay[notebook]'")
    committed = nbformat.read(ROOT / NOTEBOOK, as_version=4)
    place = (tmp_path / NOTEBOOK).parent
    place.mkdir(parents=True)
    (tmp_path / "traces").mkdir()
    for path in (ROOT / "traces").glob("philly.*"):
        shutil.copy(path, tmp_path / "traces")
    fresh = nbformat.from_dict(committed)
    client.NotebookClient(
        fresh, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(place)}}
    ).execute()
    for before, now in zip(committed.cells, fresh.cells, strict=True):
        if before.cell_type == "code":
            assert outputs(now) == outputs(before)
    last = [cell for cell in fresh.cells if cell.cell_type == "code"][-1]
    answer = "".join(each.text for each in last.outputs)
    assert re.search(r"the distance from fair shares by -\d+%", answer)
    assert re.search(r"If it resumes, .* 0.0% is thrown away instead of 0.0%", answer)


def outputs(cell: Any) -> set[str]:
    """The kinds of what a cell gave; what it prints comes in one piece or in several."""
    return {each.output_type for each in cell.outputs}


def test_the_committed_notebook_is_small_and_plain() -> None:
    """Run from beginning to end, no pictures, no paths, nothing to complain about."""
    text = (ROOT / NOTEBOOK).read_text(encoding="utf-8")
    assert len(text) < 60_000
    assert not re.search(r"/(tmp|home|root|work|Users|mnt)/", text)
    assert "image/png" not in text
    assert "Traceback" not in text
    assert "stderr" not in text
    counts = [int(count) for count in re.findall(r'"execution_count": (\d+),\n   "(?:id|metadata)', text)]
    assert counts == list(range(1, len(counts) + 1))
    assert counts
