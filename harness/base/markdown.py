"""Escapes text for Markdown, so that names cause no markup, HTML, links or mentions."""

from __future__ import annotations

import re

from harness.base.text import printable

_MARKUP = re.compile(r"([\\`*_{}\[\]|~#!$])")
_LINKED = re.compile(
    r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=\bGH-)(?=\d)", re.IGNORECASE
)
"""Places in text that GitHub and GitLab link despite escapes: addresses, mentions, issues."""

APART = "<!-- -->"
"""An invisible comment; it keeps the texts on its two sides from forming a link."""


def plain(text: str) -> str:
    """Returns text that Markdown shows unchanged, on one line.

    HTML passes through Markdown, so it is escaped too.
    """
    return _LINKED.sub(APART, _MARKUP.sub(r"\\\1", _escaped(text)))


def plain_html(text: str) -> str:
    """Returns text that HTML within Markdown shows unchanged, on one line; Markdown reads no markup there."""
    return _LINKED.sub(APART, _escaped(text))


def _escaped(text: str) -> str:
    from html import escape  # slow to import, because it has two thousand names

    return escape(printable(text), quote=False)
