"""Draws docs/rooms.svg from the code, to show which room of `harness` imports which other room.

    python scripts/rooms.py

A room may import the rooms above it. `tests/test_rooms.py` checks this rule and the picture.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "rooms.svg"

ROOMS = (
    *("base", "cluster", "policy", "plugins", "trace", "readers", "models", "engine", "runs"),
    *("analysis", "testing", "studies", "api", "cli"),
)
"""The rooms, where each is above the rooms that may import it. `plugins` has the readers that `trace` uses.
"""

_CELL, _HEAD, _NAME = 28, 72, 84  # pixels
_STYLE = "text{font:13px sans-serif;fill:#222}.r{text-anchor:end}"
_NONE = "#f2f2f2"


class Import(NamedTuple):
    """An import of one module by another.

    Attributes:
        user: the importing module, without `harness.`.
        used: the imported module.
        line: the line of the import.
    """

    user: str
    used: str
    line: int

    @property
    def rooms(self) -> tuple[str, str]:
        """The rooms of the importing and of the imported module."""
        return room_of(self.user), room_of(self.used)

    @property
    def goes_down(self) -> bool:
        """Returns True if the imported room is below the importing one."""
        user, used = map(ROOMS.index, self.rooms)
        return used > user


def room_of(module: str) -> str:
    """Returns the room of a module, such as `runs` for `runs.store`."""
    return module.partition(".")[0]


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Returns the file of each module in a room. `__init__` and `__main__` of the package have no room."""
    found = {}
    for path in sorted((root / "harness").rglob("*.py")):
        parts = path.relative_to(root / "harness").with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name not in ("", "__main__"):
            found[name] = path
    return found


@cache
def imports(root: Path = ROOT) -> list[Import]:
    """Returns the imports between modules of rooms, including late imports and those for the type checker."""
    known = modules(root)
    return [
        Import(name, used, line)
        for name, path in known.items()
        for used, line in sorted(set(_imported(path, known)))
        if used != name
    ]


def _imported(path: Path, known: dict[str, Path]) -> Iterator[tuple[str, int]]:
    within = list[ast.AST]([ast.parse(path.read_text(encoding="utf-8"))])
    for node in within:
        within += (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr))
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name.removeprefix("harness.") in known else node.module for name in inner]
        else:
            continue
        for name in names:
            if name.startswith("harness.") and name.removeprefix("harness.") in known:
                yield name.removeprefix("harness."), node.lineno


def picture(root: Path = ROOT) -> str:
    """Returns the picture, which has a row for each room and a mark for each room that it imports."""
    used_by = {each.rooms for each in imports(root)}
    width, height = _NAME + _CELL * len(ROOMS) + 8, _HEAD + _CELL * len(ROOMS) + 8
    parts = ["<title>Which room of harness imports which</title>", f"<style>{_STYLE}</style>"]
    parts.append('<rect width="100%" height="100%" fill="#fff"/>')
    for place, room in enumerate(ROOMS):
        left, top = _NAME + _CELL * place, _HEAD + _CELL * place
        at = f'transform="translate({left + 17},{_HEAD - 6}) rotate(-60)"'
        parts += [
            f"<text {at}>{room}</text>",
            f'<text x="{_NAME - 8}" y="{top + 17}" class="r">{room}</text>',
        ]
        for column, used in enumerate(ROOMS):
            fill = _colour(column - place) if used == room or (room, used) in used_by else _NONE
            corner = f'x="{_NAME + _CELL * column}" y="{top}"'
            parts.append(f'<rect {corner} width="{_CELL - 2}" height="{_CELL - 2}" fill="{fill}"/>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
    return "\n".join((head, *parts, "</svg>\n"))


def _colour(below: int) -> str:
    """Returns the colour of a mark, which is blue for a room above, grey for the same room, and red below."""
    return "#d9564a" if below > 0 else "#5b9bd5" if below else "#888"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
