"""The pages as a site: all are on the front page, links lead somewhere, and the reference is complete."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from doc_pages import ROOT

from harness.plugins import load


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """`scripts/site.py`."""
    spec = importlib.util.spec_from_file_location("harness_site", ROOT / "scripts" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def anchors(page: Path) -> set[str]:
    """What a forge calls the headings of a page: lower case, without signs, hyphens for spaces; numbered."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        found.add(f"#{name}-{seen[name]}" if seen[name] else f"#{name}")
        seen[name] += 1
    return found


def test_every_link_leads_somewhere(site: ModuleType) -> None:
    """To a file of the repository, and to a heading of it where one is named."""
    dead = []
    for page in site.pages():
        for name, anchor in site.links(page):
            target = (ROOT / page.parent / name).resolve()
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                dead.append(f"{page}: {name}{anchor}")
    assert not dead


def test_the_front_page_has_every_page(site: ModuleType) -> None:
    """Each once."""
    listed = [(Path("docs") / name).as_posix() for name, _ in site.links(Path("docs/README.md"))]
    known = {(Path("docs") / "README.md").as_posix()}
    tidy = [re.sub(r"^docs/\.\./", "", name) for name in listed]
    assert len(tidy) == len(set(tidy))
    assert {page.as_posix() for page in site.pages()} - known == set(tidy)


def test_a_page_that_is_linked_to_is_a_page_of_the_site(site: ModuleType) -> None:
    """Else it would be copied, and be in no list."""
    known = {(ROOT / page).resolve() for page in site.pages()}
    linked = {(ROOT / page.parent / name).resolve() for page in site.pages() for name, _ in site.links(page)}
    assert {target for target in linked if target.suffix == ".md"} <= known


def test_no_docstring_has_letters_behind_a_name(site: ModuleType) -> None:
    """Which reStructuredText does not take as the name's end."""
    texts = {name: inspect.getsource(importlib.import_module(name)) for name in site.API}
    assert not [name for name, text in texts.items() if re.search(r"[^`]`[A-Za-z_.]+`[a-z]", text)]


def test_the_reference_has_every_option_of_every_plugin(site: ModuleType) -> None:
    """With its default, as one would write it."""
    plugins = load()
    text = "\n".join(site._options(plugins))
    for spec in (*plugins.policies, *plugins.readers):
        assert f"### `{spec.name}`" in text
        assert all(f"| `{option.name}` |" in text for option in spec.options)
    assert "| `evictionLatency` | `1s` |" in text


def test_the_reference_has_every_column_of_a_run(site: ModuleType) -> None:
    """By table, with types."""
    text = "\n".join(site._schemas())
    for name in ("jobs", "decisions", "stints", "timeline", "metrics"):
        assert f"## `{name}.parquet`" in text
    assert "| `holding` | Int8 |" in text
    assert "| `request.<resource>` | Int64 |" in text


@pytest.mark.parametrize(
    "text",
    [
        '<link rel="stylesheet" href="https://fonts.example/x.css">',
        '<script async src="//cdn.example/x.js">',
        '<img alt="" src="http://x.example/a.png">',
        "@import 'https://x.example/a.css';",
        "src: url(https://x.example/f.woff2)",
    ],
)
def test_what_a_page_would_fetch_is_found(site: ModuleType, tmp_path: Path, text: str) -> None:
    """Links that a reader follows are no such thing."""
    (tmp_path / "page.html").write_text(text)
    assert site.fetched(tmp_path)
    (tmp_path / "page.html").write_text('<a href="https://x.example/">there</a><img src="here.png">')
    assert not site.fetched(tmp_path)


@pytest.mark.slow
def test_the_site_is_made_without_a_warning(tmp_path: Path) -> None:
    """With all that it refers to, and a search that needs no server."""
    pytest.importorskip("sphinx", reason="the site needs sphinx: pip install -e '.[docs]'")
    command = [sys.executable, str(ROOT / "scripts" / "site.py"), str(tmp_path / "site")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    made = tmp_path / "site"
    assert (made / "searchindex.js").is_file()
    text = (made / "reference" / "cli.html").read_text(encoding="utf-8")
    assert all(f"harness {name}" in text for name in ("replay", "export", "trace calibrate", "cluster init"))
    assert "harness replay traces/philly.parquet --plugin none" in text
    assert (made / "reports" / "mix.html").is_file()
