"""The published documentation: each release keeps its pages, and readers land on the stable ones."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_releases_stay_and_the_highest_is_stable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older release that is mended later does not become the stable one; `v0.10` is above `v0.9`."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    place = importlib.import_module("place_docs").place
    site, pages = tmp_path / "site", tmp_path / "pages"
    site.mkdir()
    pages.mkdir()

    def published(name: str, text: str) -> str:
        (site / "index.html").write_text(text)
        place(site, pages, name)
        return (pages / "index.html").read_text()

    assert 'url=latest/"' in published("latest", "one")
    assert 'url=stable/"' in published("v0.10.0", "two")
    front = published("v0.9.1", "three")
    assert front.index("v0.10.0") < front.index("v0.9.1")
    published("latest", "four")
    found = {path.parent.name: path.read_text() for path in pages.glob("*/index.html")}
    assert found == {"latest": "four", "stable": "two", "v0.10.0": "two", "v0.9.1": "three"}
    with pytest.raises(ValueError, match=r"a tag such as v0\.2\.0"):
        place(site, pages, "main")
