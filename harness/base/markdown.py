"""Escapes text for Markdown so that names don't cause markup, HTML, links or mentions. Writes tables."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from harness.base.text import printable

_MARKUP = re.compile(r"([\\`*_{}\[\]|~#!$])")
_LINKED = re.compile(
    r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=\bGH-)(?=\d)", re.IGNORECASE
)
"""The places in text that GitHub and GitLab link despite escapes, namely addresses, mentions and issues."""

APART = "<!-- -->"
"""An invisible comment that prevents the texts before and after it from forming a link."""


def plain(text: str) -> str:
    """Returns text that Markdown shows unchanged on one line.

    The function also escapes HTML, because HTML passes through Markdown.
    """
    return _LINKED.sub(APART, _MARKUP.sub(r"\\\1", _escaped(text)))


def pipe_table(rows: Sequence[Sequence[str]], *, left: Container[int] = (0,)) -> list[str]:
    """Returns the lines of a table with escaped cells. The first row is the head.

    The columns in `left` are aligned left, and the others right.
    """
    head, *body = ([plain(cell) for cell in row] for row in rows)
    rule = ["---" if place in left else "---:" for place in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *body)]


def plain_html(text: str) -> str:
    """Returns text in a form that HTML elements within Markdown show unchanged on one line.

    Markdown syntax has no effect in such elements, so the function doesn't escape it.
    """
    return _LINKED.sub(APART, _escaped(text))


def _escaped(text: str) -> str:
    from html import escape  # slow to import, because it has two thousand names

    return escape(printable(text), quote=False)
