"""Puts the output of a script into a page, between a mark that names the script and the next end mark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ENDS = "<!-- end -->"


def begins(script: str, what: str = "") -> str:
    """Returns the mark above a script's output.

    Args:
        script: the file of the script, such as `scripts/speed.py`.
        what: the name of the output, if the script has several.
    """
    return f"<!-- {f'{what}: ' if what else ''}made by {script} -->"


def filled(page: str, mark: str, lines: Iterable[str]) -> str:
    """Returns a page with these lines between a mark and the next end mark."""
    made = "\n".join([mark, *lines, ENDS])
    return re.sub(f"{re.escape(mark)}.*?{re.escape(ENDS)}", lambda _: made, page, flags=re.DOTALL)


def write(page: Path, mark: str, lines: Iterable[str]) -> None:
    """Puts lines into the file of a page. See `filled`."""
    page.write_text(filled(page.read_text(encoding="utf-8"), mark, lines), encoding="utf-8")
