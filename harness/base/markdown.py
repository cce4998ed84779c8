"""Text in Markdown that stays what it is: names are no markup, no HTML, no links and no mentions."""

from __future__ import annotations

import re

from harness.base.text import printable

_MARKUP = re.compile(r"([\\`*_{}\[\]|~#!$])")
_LINKED = re.compile(
    r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=\bGH-)(?=\d)", re.IGNORECASE
)
"""Places within what GitHub and GitLab make links of, whatever is escaped: addresses, mentions, issues."""

APART = "<!-- -->"
"""A comment, which shows as nothing: text on both of its sides is no link."""


def plain(text: str) -> str:
    """Text that Markdown takes as it is, on one line; it lets HTML through, so that is escaped too."""
    from html import escape  # dear to import: it knows two thousand names

    return _LINKED.sub(APART, _MARKUP.sub(r"\\\1", escape(printable(text), quote=False)))
