"""Prints how many function calls each shortcut of Kueue's models saves.

    PYTHONPATH=tests python scripts/shortcuts.py fairsharing traces/philly.parquet own.parquet

The script compares the calls without a shortcut with the calls with all shortcuts. It replays each trace with
the cluster next to it. The last column is the world of `benchmarks.backlog` with 40 queues in two levels.
Calls are counted while the engine runs, so the load of the machine has no influence. The script needs the
plain build.
"""

from __future__ import annotations

import cProfile
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import click
from benchmarks import backlog

import harness
from harness.engine import Engine
from harness_plugins.kueue.rules.heads import AllHeads
from harness_plugins.kueue.shortcuts import shortcuts
from harness_plugins.kueue.shortcuts.heads import EveryCycle
from harness_plugins.kueue.shortcuts.kept_nominations import KeptNominations
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts

_EVERYTHING = "all shortcuts"


class _Forgets(dict[Any, Any]):
    """A cache that stores nothing."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


def _plain(method: str) -> None:
    """Makes a method return the result of the plain rule."""
    setattr(Shortcuts, method, lambda self, *plain: plain[-1])


def _answers(owner: type, answer: Any, *methods: str) -> None:
    """Makes methods return a result without information."""
    for method in methods:
        setattr(owner, method, lambda *args, **kwargs: answer)


def _all_heads() -> None:
    made = Shortcuts.nomination

    def nomination(self: Shortcuts, world: Any, *args: Any) -> Any:
        return made(self, world, *args)[0], EveryCycle(AllHeads(world.pending))

    Shortcuts.nomination = nomination  # type: ignore[method-assign]


def _forgets(*kept: str) -> None:
    """Makes nominations store nothing."""
    made = KeptNominations.__init__

    def begin(self: KeptNominations, *args: Any) -> None:
        made(self, *args)
        for name in kept:
            setattr(self, name, _Forgets())

    KeptNominations.__init__ = begin  # type: ignore[method-assign]


OFF: dict[str, Callable[[], None]] = {
    _EVERYTHING: lambda: None,
    "KeptShares": lambda: _plain("shares"),
    "KeptOffers": lambda: _plain("offers"),
    "KeptAssignments": lambda: _plain("assemble"),
    "CachedFits": lambda: _answers(shortcuts.CachedFits, None, "of", "note"),
    "CachedNoFits": lambda: _answers(shortcuts.CachedNoFits, None, "of", "note", "still_reserves"),
    "InVain": lambda: _answers(shortcuts.InVain, None, "run", "notice"),
    "KeptOut": lambda: _answers(shortcuts.KeptOut, 0, "cycles"),
    "KeptNominations": lambda: _forgets("_known"),
    "KeptNominations, within a cycle": lambda: _forgets("_known_again"),
    "RestingHeads, with InVain and KeptOut": _all_heads,
}


def _count(plugin: str, trace: str, off: str) -> int:
    """Returns the number of calls while the engine runs."""
    OFF[off]()
    play, profile = Engine.play, cProfile.Profile()

    def counted(self: Engine, *args: Any) -> None:
        profile.runcall(play, self, *args)

    Engine.play = counted  # type: ignore[method-assign]
    if trace:
        with tempfile.TemporaryDirectory() as folder:
            harness.replay(trace, plugin=plugin, output=folder)
    else:
        backlog.cost(plugin, 300, queues=40)
    return sum(each.callcount for each in profile.getstats())


def _rows(plugin: str, traces: list[str]) -> Iterator[tuple[str, list[int]]]:
    for off in OFF:
        counts = []
        for trace in traces:
            with multiprocessing.get_context("fork").Pool(1) as pool:
                counts.append(pool.apply(_count, (plugin, trace, off)))
        yield off, counts


@click.command()
@click.argument("plugin", type=click.Choice(["kueue-classic", "fairsharing"]))
@click.argument("traces", nargs=-1)
def main(plugin: str, traces: tuple[str, ...]) -> None:
    """Print, for each shortcut, how many calls a replay without it makes, by trace."""
    every: list[int] = []
    click.echo("\t".join(["without", *traces, "40 queues"]))
    for off, counts in _rows(plugin, [*traces, ""]):
        every = every or counts
        shown = [f"{count:,}" for count in counts] if off == _EVERYTHING else []
        ratios = [f"{count / before:.2f}" for count, before in zip(counts, every, strict=True)]
        click.echo("\t".join([off, *(shown or ratios)]))


if __name__ == "__main__":
    main()
