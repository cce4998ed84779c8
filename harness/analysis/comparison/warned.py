"""The warnings of the compared replays, folded for a comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.base.markdown import plain_html
from harness.base.text import counted

if TYPE_CHECKING:
    from harness.analysis.comparison.comparison import Comparison

_FIRST = 5


def warnings_of(comparison: Comparison) -> list[str]:
    """Returns the distinct warnings, each with the names of its runs unless it applies to all runs."""
    whose: dict[str, list[str]] = {}
    for name, run in zip(comparison.names, comparison.runs, strict=True):
        for sentence in dict.fromkeys(run.info["cluster"].get("warnings", [])):
            whose.setdefault(sentence, []).append(name)
    return [
        sentence if len(names) == len(comparison.runs) else f"{', '.join(names)}: {sentence}"
        for sentence, names in whose.items()
    ]


def warnings_line(comparison: Comparison, *, brief: bool) -> list[str]:
    """Returns the warnings as a single line of HTML, or an empty list if there are none.

    Args:
        comparison: the comparison.
        brief: whether to show only the first warnings, and the number of further ones.
    """
    every = warnings_of(comparison)
    if not every:
        return []
    shown = every[:_FIRST] if brief else every
    more = [f"and {len(every) - len(shown):,} more"] if len(shown) < len(every) else []
    items = "".join(f"<li>{plain_html(each)}</li>" for each in (*shown, *more))
    title = f"{counted(len(every), 'warning')} of the replays"
    return [f"<details><summary>{title}</summary><ul>{items}</ul></details>", ""]
