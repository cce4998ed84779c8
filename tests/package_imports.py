"""Which names of `harness` others can build on, and which files import other ones."""

from __future__ import annotations

import ast
from pathlib import Path

import harness

STABLE = ("harness.policy", "harness.models", "harness.readers", "harness.testing")
"""Rooms whose names stay, with `harness` itself; docs/stability.md says so."""

BESIDES = {
    *(f"harness.base.{name}" for name in ("errors", "units", "options", "memo", "json_text")),
    *("harness.plugins", "harness.plugins.hookspecs", "harness.plugins.conformance"),
    "harness.analysis.report",
}
"""The modules that stay with them."""

INTERNAL = "harness.readers.live"
"""What is in one of these rooms, and may change."""


def is_stable(module: str, name: str) -> bool:
    """Whether a name of a module of `harness` is one that a third party can build on."""
    if any(part.startswith("_") for part in (*module.split("."), name)):
        return False
    if module == "harness":
        return name in harness.__all__
    if module == INTERNAL or module.startswith(f"{INTERNAL}."):
        return False
    return module in BESIDES or any(module == room or module.startswith(f"{room}.") for room in STABLE)


def internal_imports(path: Path) -> list[str]:
    """What a file imports of `harness` that may change at any time."""
    found = []
    within = list[ast.AST]([ast.parse(path.read_text(encoding="utf-8"))])
    for node in within:
        within += (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "harness":
            names = [alias.name for alias in node.names]
            found += [f"{node.module}: {name}" for name in names if not is_stable(node.module or "", name)]
        elif isinstance(node, ast.Import):
            found += [
                each.name
                for each in node.names
                if each.name.startswith("harness.") and not is_stable(*each.name.rsplit(".", 1))
            ]
    return found
