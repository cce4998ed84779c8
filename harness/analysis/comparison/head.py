"""The head of a comparison: the baseline, the reason for its choice, and the other runs' differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.analysis.comparison.distinction import PLUGIN, Distinction, summarized
from harness.analysis.comparison.worlds import distinctions
from harness.base.grouping import grouped
from harness.base.markdown import plain
from harness.base.text import printable
from harness.base.units import format_duration
from harness.runs.epochs import sentence, shared, summary
from harness.runs.run import Run

_MOST = 12
"""The maximum number of lines about a group of runs. The JSON output contains all lines."""

_NAMED = 3

_SAME = "the same plugin, options, settings, trace and cluster"
"""The text about equal runs, for example after a patch without effect, or for one run with two names."""


class Group(NamedTuple):
    """Runs that all differ from the baseline in the same way, with sentences about their differences.

    Attributes:
        alike: True if the sentences do not describe differences, but what the runs have in common.
    """

    names: Sequence[str]
    sentences: Sequence[str]
    alike: bool = False


class Head:
    """The facts about the compared runs that a reader needs before the table of metrics.

    `chosen` says why the first run is the baseline.

    Attributes:
        distinctions: for each run, its differences from the baseline; empty for the baseline itself.
    """

    def __init__(self, runs: Sequence[Run], names: Sequence[str], chosen: str) -> None:
        self._events = [
            (name, run.info["cluster"]["events"])
            for name, run in zip(names, runs, strict=True)
            if run.info["cluster"].get("events")
        ]
        self._plugins = [str(run.info["policy"]["name"]) for run in runs]
        self._names = names
        self.chosen = chosen
        self.distinctions = [[], *(distinctions(runs[0], run, runs) for run in runs[1:])]

    @property
    def title(self) -> str:
        """The baseline's name and why it is the baseline; "" if there is only one run."""
        name, plugin = self._names[0], self._plugins[0]
        of_plugin = "" if name.startswith(plugin) else f" (plugin {plugin})"
        return f"baseline {name}{of_plugin}: {self.chosen}" if len(self._names) > 1 else ""

    @property
    def groups(self) -> list[Group]:
        """Groups of runs with their differences, or with a note that there are none.

        A different plugin is left out if the names of the runs already show it.
        """
        of_runs: dict[Distinction, list[str]] = {}
        for name, plugin, found in zip(self._names, self._plugins, self.distinctions, strict=True):
            for each in found:
                if each.kind != PLUGIN or each.field or not self._tells(name, plugin):
                    of_runs.setdefault(each, []).append(name)
        together = grouped((tuple(names), each) for each, names in of_runs.items())
        groups = [Group(names, list(_first(summarized(found)))) for names, found in together.items()]
        same = [name for name, found in zip(self._names[1:], self.distinctions[1:], strict=True) if not found]
        return groups + ([Group(same, [_SAME], alike=True)] if same else []) + list(self._shared())

    def _shared(self) -> Iterator[Group]:
        if len(self._events) < 2:
            return
        found = shared([events for _, events in self._events])
        told = [
            f"{sentence(edit)}, after {format_duration(each['at_us'])}"
            for each in found
            for edit in each["edits"]
        ]
        if len(told) > _NAMED:
            told[_NAMED:] = [f"and {len(told) - _NAMED:,} more"]
        said = (
            f"events that they share: {summary(found)}: {'; '.join(told)}" if told else "they share no event"
        )
        yield Group([name for name, _ in self._events], [said], alike=bool(found))

    def _tells(self, name: str, plugin: str) -> bool:
        """Returns True if the names of a run and of the baseline contain the names of their plugins."""
        return name.startswith(plugin) and self._names[0].startswith(self._plugins[0])


def chosen_by(runs: Sequence[Run], baseline: str | None) -> str:
    """Explains why the first run is the baseline: it was requested, given first, or is first by name."""
    if baseline is not None or len(runs) < 2:
        return "as requested"
    paths = [run.path.absolute() for run in runs]
    names = [path.name.casefold() for path in paths]
    if len({path.parent for path in paths}) == 1 and names == sorted(names):
        return (
            f"the first of {len(runs)} runs, sorted by name as in {runs[0].path.parent / '*'}; "
            "--baseline chooses another"
        )
    return f"the first of {len(runs)} runs, in the given order"


def _first(sentences: Sequence[str]) -> Iterator[str]:
    yield from sentences[:_MOST]
    if len(sentences) > _MOST:
        yield f"and {len(sentences) - _MOST:,} more differences; --json lists all of them"


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
