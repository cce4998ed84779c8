"""The text above a comparison's table: the compared runs and their differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.base.markdown import plain
from harness.base.text import printable

if TYPE_CHECKING:
    from harness.analysis.comparison.head import Head


def head_lines(head: Head, title: str = "") -> Iterator[str]:
    """Yields the lines above a comparison's table, for a terminal.

    A blank line comes last. If there is nothing to say, there are no lines.
    """
    if title:
        yield printable(title)
    for group in head.groups:
        yield printable(", ".join(group.names))
        yield from (f"  {printable(sentence)}" for sentence in group.sentences)
    if title or head.groups:
        yield ""


def head_markdown(head: Head, title: str = "") -> Iterator[str]:
    """Yields the text above a comparison's table as Markdown for a pull request."""
    if title:
        yield plain(title)
        yield ""
    for group in head.groups:
        yield f"- {plain(', '.join(group.names))}"
        yield from (f"  - {plain(sentence)}" for sentence in group.sentences)
    if head.groups:
        yield ""


def head_html(head: Head) -> str:
    """Returns the text above a comparison's table as HTML for a notebook."""
    from html import escape

    parts = [f"<p>{escape(head.title)}</p>"] if head.title else []
    for group in head.groups:
        points = "".join(f"<li>{escape(sentence)}</li>" for sentence in group.sentences)
        parts.append(f"<p>{escape(', '.join(group.names))}</p><ul>{points}</ul>")
    return "".join(parts)
