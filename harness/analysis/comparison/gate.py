"""Output about conditions: the checks of each condition for each run, and a summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.base.markdown import plain
from harness.base.text import aligned, columns, folded, printable

if TYPE_CHECKING:
    from harness.analysis.comparison.comparison import Comparison
    from harness.analysis.comparison.conditions import Check

_WORDS = {True: "fails", False: "passes", None: "undecided"}
"""The word for a check, depending on whether its condition holds.

A check passes if its condition does not hold.
"""


def checks_text(
    comparison: Comparison, checks: Sequence[Check], *, values: bool, width: int | None = None
) -> str:
    """Formats all checks for a terminal, including the checks that pass.

    The argument `values` says whether point values were judged. If the table would be wider than the
    terminal, the text contains a sentence for each check instead.
    """
    summary = printable(_summary(comparison, checks, values=values))
    rows = [[check.condition, _WORDS[check.holds], check.text] for check in checks]
    table = aligned([["check", "result", "found"], *rows], left=(0, 1, 2))
    if width is None or all(columns(line) <= width for line in (summary, *table.split("\n"))):
        return f"{summary}\n{table}"
    sentences = [printable(f"{result}: {condition}: {found}") for condition, result, found in rows]
    return "\n".join(folded([summary, *sentences], width))


def checks_markdown(comparison: Comparison, checks: Sequence[Check], *, values: bool) -> str:
    """Returns the checks as Markdown for a pull request."""
    lines = [f"- {_WORDS[check.holds]}: {plain(f'{check.condition}: {check.text}')}" for check in checks]
    return "\n".join([plain(_summary(comparison, checks, values=values)), "", *lines])


def _summary(comparison: Comparison, checks: Sequence[Check], *, values: bool) -> str:
    failed, undecided = (sum(check.holds is each for check in checks) for each in (True, None))
    runs = len(comparison.runs) - 1
    of = f"every run but the baseline {comparison.names[0]}" if runs else comparison.names[0]
    several = "s" if len(checks) > 1 else ""
    left = f", {undecided:,} undecided" if undecided else ""
    how = "point values" if values else "95 % intervals over twins"
    fails = f"{failed or 'none'} fail{'s' if failed <= 1 else ''}"
    return f"{len(checks):,} check{several} of {of}, by {how}: {fails}{left}"
