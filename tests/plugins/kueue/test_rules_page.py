"""RULES.md names functions that exist, and every module of the rules."""

from __future__ import annotations

import ast
import re
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import harness_plugins.kueue as kueue

PACKAGE = Path(kueue.__file__).parent
PAGE = (PACKAGE / "RULES.md").read_text(encoding="utf-8")
SCRIPT = Path(__file__).parents[3] / "scripts" / "shortcuts.py"
NAMED = re.findall(r"`((?:rules|state|shortcuts|manifests|harness)\.[\w.]+)` \|$", PAGE, re.MULTILINE)
TABLES = PAGE.split("### What the shortcuts save")[0]
ROWS = [line for line in TABLES.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
APART = {"rules.topology.search"}
"""Steps of rules that are named."""

READ_ELSEWHERE = {"kueue": {"newer_than"}, "elastic_quota": {"rejected_by", "version"}}
"""Fields of tuples that rules read by their place, what the queue in `harness.models.kube` reads, and the
version that the state counts for all shortcuts."""


@pytest.mark.parametrize("name", NAMED)
def test_what_the_page_names_is_there(name: str) -> None:
    """Module by module, then attribute by attribute."""
    parts = name.split(".")
    if parts[0] != "harness":  # the package's own rooms
        parts = ["harness_plugins", "kueue", *parts]
    depth = max(at for at in range(1, len(parts)) if is_module(parts[:at]))
    assert callable(reduce(getattr, parts[depth:], import_module(".".join(parts[:depth]))))


def test_each_row_names_one_function() -> None:
    """Of the two tables, but for their heads."""
    assert len(NAMED) == len(ROWS) - 2


@pytest.mark.parametrize("room", ["rules", "shortcuts"])
def test_every_module_of_a_room_is_on_the_page(room: str) -> None:
    """A new rule, or a new shortcut, comes with its row."""
    there = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path in (PACKAGE / room).rglob("*.py")
        if path.name != "__init__.py"
    }
    named = {module for module in there if any(each.startswith(f"{module}.") for each in NAMED)}
    assert there - named == {each for each in APART if each.startswith(f"{room}.")} | (
        {"shortcuts.shortcuts", "shortcuts.heads"} if room == "shortcuts" else set()
    )


def test_the_page_says_what_each_shortcut_saves() -> None:
    """Each switch of the script that measures shortcuts has its row, or its place in the text below."""
    script = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    (table,) = (
        node.value
        for node in script.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "OF_KUEUE"
    )
    assert isinstance(table, ast.Dict)
    switches = [key.value for key in table.keys if isinstance(key, ast.Constant)]
    assert len(switches) > 10
    assert [each for each in switches if str(each) not in PAGE.split("### What the shortcuts save")[1]] == []


def offered(path: Path) -> set[str]:
    """The names of methods, attributes and parameters that a module defines; a parameter ends with `=`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            found |= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            found |= {ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)}
        elif isinstance(node, ast.FunctionDef):
            arguments = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            found |= {f"{each.arg}=" for each in (*arguments, *node.args.kwonlyargs)}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return {each for each in found if not each.startswith("_")}


def used(path: Path) -> set[str]:
    """The names that a module reads, and the parameters that it gives by name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        elif isinstance(node, ast.keyword):
            found.add(f"{node.arg}=")
    return found


@pytest.mark.parametrize("package", ["kueue", "elastic_quota"])
def test_rules_take_and_return_nothing_that_only_a_shortcut_uses(package: str) -> None:
    """What shortcuts read is read elsewhere too, and arguments that they give by name are given elsewhere."""
    modules = list((PACKAGE.parent / package).rglob("*.py"))
    shortcuts = [path for path in modules if "shortcuts" in path.parts]
    others = [path for path in modules if "shortcuts" not in path.parts]
    rules = [path for path in others if "rules" in path.parts or package != "kueue"]
    only_there = set().union(*map(used, shortcuts)) - set().union(*map(used, others))
    assert len(rules) > 20
    assert set().union(*map(offered, rules)) & only_there == READ_ELSEWHERE.get(package, set())


def is_module(parts: list[str]) -> bool:
    """Whether names lead to a module."""
    try:
        return find_spec(".".join(parts)) is not None
    except ModuleNotFoundError:  # what comes before is a module, and no package
        return False
