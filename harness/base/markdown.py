"""Escapes text for Markdown: names become no markup, no HTML, no links and no mentions."""

from __future__ import annotations

import re

from harness.base.text import printable

_MARKUP = re.compile(r"([\\`*_{}\[\]|~#!$])")
_LINKED = re.compile(
    r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=\bGH-)(?=\d)", re.IGNORECASE
)
"""Places in text that GitHub and GitLab link despite escapes: addresses, mentions, issues."""

APART = "<!-- -->"
"""A comment that shows as nothing; the texts on its two sides do not form a link."""


def plain(text: str) -> str:
    """Returns text that Markdown shows unchanged, on one line.

    HTML passes through Markdown, so it is escaped too.
    """
    from html import escape  # dear to import: it knows two thousand names

    return _LINKED.sub(APART, _MARKUP.sub(r"\\\1", escape(printable(text), quote=False)))
