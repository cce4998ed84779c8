"""The rooms of `harness`: which there are, and that each imports only those above it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 420

KNOWN: Mapping[tuple[str, str], str] = {
    ("base.errors", "runs.run"): "the type of `ReplayError.runs`",
    ("cluster.kinds.table", "plugins.loading"): "kinds of installed plugins, met while manifests are read",
    ("plugins.hookspecs", "runs.plan"): "the type of what a hook gets",
    ("plugins.hookspecs", "runs.run"): "the type of what a hook gets",
    ("plugins.measurement", "runs.run"): "the type of what a metric measures",
    ("plugins.section", "analysis.report.blocks"): "the type of what a section makes",
    ("plugins.section", "analysis.report.material"): "the type of what a section gets",
    ("runs.run", "analysis.comparison"): "a notebook shows a run as a comparison of one",
}
"""User and used module -> why a room imports one that is below it. The list only gets shorter."""


@pytest.fixture(scope="module")
def rooms() -> ModuleType:
    """`scripts/rooms.py`, which is in no package."""
    spec = spec_from_file_location("harness_rooms", ROOT / "scripts" / "rooms.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["harness_rooms"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_room_imports_only_rooms_above_it(rooms: ModuleType) -> None:
    """By run-time, type-only and late imports alike, but for known exceptions, each with its reason."""
    found = {(each.user, each.used): each.line for each in rooms.imports(rooms.ROOT) if each.goes_down}
    assert {pair: line for pair, line in found.items() if pair not in KNOWN} == {}


def test_no_exception_is_listed_that_is_gone(rooms: ModuleType) -> None:
    """Whoever takes one out of the code takes it out of the list."""
    found = {(each.user, each.used) for each in rooms.imports(rooms.ROOT) if each.goes_down}
    assert set(KNOWN) - found == set()


def test_imports_are_seen_wherever_they_are_written(rooms: ModuleType, tmp_path: Path) -> None:
    """At the top, for the type checker alone, within a function, of a module and of a name in it."""
    for name in ("base/low.py", "runs/run.py", "runs/store.py", "cli/face.py", "api.py"):
        (tmp_path / "harness" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "harness" / name).write_text("")
    (tmp_path / "harness" / "base" / "low.py").write_text(
        "from typing import TYPE_CHECKING\nimport harness.api\n"
        "if TYPE_CHECKING:\n    from harness.runs.run import Run\n"
        "def late():\n    from harness.runs import store\n    from json import loads\n"
    )
    (tmp_path / "harness" / "cli" / "face.py").write_text("from harness import api\n")
    found = {(each.user, each.used, each.line, each.goes_down) for each in rooms.imports(tmp_path)}
    assert found == {
        ("base.low", "api", 2, True),
        ("base.low", "runs.run", 4, True),
        ("base.low", "runs.store", 6, True),
        ("cli.face", "api", 1, False),
    }


def test_the_rooms_are_what_lies_in_the_package(rooms: ModuleType) -> None:
    """At most 14 names meet whoever opens the folder, beside the face, `__main__` and the mark of types."""
    folder = ROOT / "harness"
    there = {path.name for path in folder.iterdir() if path.is_file() or any(path.rglob("*.py"))}
    aside = {"__init__.py", "__main__.py", "py.typed"}
    assert {name.removesuffix(".py") for name in there - aside} == set(rooms.ROOMS)
    assert len(rooms.ROOMS) <= 14


def test_no_room_imports_the_face_of_the_package(rooms: ModuleType) -> None:
    """`from harness import Job` is for others; within, each name is imported from where it is."""
    face = {
        f"{name}: {line.strip()}"
        for name, path in rooms.modules().items()
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.lstrip().startswith("from harness import ") and line.strip() != "from harness import api"
    }
    assert face == set()


def test_no_module_is_long(rooms: ModuleType) -> None:
    """One idea a module; those that are longer today are listed, and the list only gets shorter."""
    long = {
        name
        for name, path in rooms.modules().items()
        if len(path.read_text(encoding="utf-8").splitlines()) > LONGEST
    }
    listed = {"api", "cluster.model", "engine.lifecycle", "engine.referee"}
    assert long <= listed | {"models.kube.queue", "models.kube.scheduler"}


def test_the_picture_is_that_of_the_code(rooms: ModuleType) -> None:
    """`python scripts/rooms.py` draws it anew."""
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.picture()


def test_the_page_has_a_paragraph_for_each_room_in_order(rooms: ModuleType) -> None:
    """Whoever reads docs/architecture.md meets the rooms as the picture has them."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\*\*`([a-z]+)(?:/|\.py)`\*\*", page, re.MULTILINE)) == rooms.ROOMS


def test_what_the_page_names_is_there() -> None:
    """Every file and folder of the rooms, of the built-in plugins and of the four ways."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    there = {
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in ("harness", "plugins", "scripts", "tests")
        for path in (ROOT / folder, *(ROOT / folder).rglob("*"))
    } | {f"/{path.name}" for path in ROOT.iterdir()}
    named = set(re.findall(r"`([\w./]+(?:\.py|/))`", page))
    assert len(named) > 100
    assert not {name for name in named if not any(path.endswith(f"/{name.strip('/')}") for path in there)}
