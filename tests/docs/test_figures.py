"""Figures that pages name of the bundled traces are those that `scripts/figures.py` computes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    """The script, which is in no package."""
    spec = importlib.util.spec_from_file_location("figures", ROOT / "scripts" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["figures"] = module
    spec.loader.exec_module(module)
    return module


def test_every_claim_stands_in_its_page_once(figures: ModuleType) -> None:
    """A page whose sentence was changed has to change it in the script, too."""
    for claim in figures.CLAIMS:
        text = (ROOT / claim.page).read_text(encoding="utf-8")
        assert len(claim.pattern.findall(text)) == 1, claim.text


def test_a_figure_that_is_not_so_is_stale_and_can_be_put_right(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever lines are broken; what is around it stays."""
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    claim = figures.Claim("page.md", "of {} jobs {} wait", lambda runs: ["82,247", "7 %"])
    monkeypatch.setattr(figures, "CLAIMS", (claim,))
    (tmp_path / "page.md").write_text("Here, of 82,247\njobs 52 % wait.\n")
    (told,) = figures.stale(figures.Runs(tmp_path))
    assert told == "page.md: of {} jobs {} wait\n  says 82,247, 52 %\n  it is 82,247, 7 %"
    assert figures.stale(figures.Runs(tmp_path), write=True)
    assert (tmp_path / "page.md").read_text() == "Here, of 82,247\njobs 7 % wait.\n"
    assert figures.stale(figures.Runs(tmp_path)) == []


@pytest.mark.slow
def test_no_page_is_stale(figures: ModuleType, tmp_path: Path) -> None:
    """All runs that pages speak of, replayed."""
    assert figures.stale(figures.Runs(tmp_path)) == []
