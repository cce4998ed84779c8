"""docs/study.md: its experiment is the example's, and its figure can be drawn."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

import harness

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
EXAMPLE = yaml.safe_load((ROOT / "docs" / "examples" / "study.yaml").read_text(encoding="utf-8"))


def test_the_page_shows_the_experiment() -> None:
    """Whoever copies it gets what the commands run."""
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert yaml.safe_load(shown) == EXAMPLE


def test_the_figure_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From an hour of the same experiment, with one seed."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    for name in ("mix.parquet", "mix.cluster.yaml"):
        shutil.copy(ROOT / "traces" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    seeds = {**EXAMPLE["seeds"], "count": 1}
    harness.sweep({**EXAMPLE, "trace": "mix.parquet", "settings": {"until": "1h"}, "seeds": seeds}, workers=1)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/study.md", "exec"), {})
    assert (tmp_path / "waits.svg").read_text().startswith("<svg")
    assert len((tmp_path / "waits.csv").read_text().splitlines()) == 5
