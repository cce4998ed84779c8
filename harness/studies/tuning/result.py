"""Defines the result of a tuning, with the found values, their figures, and a patch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.comparison.figures import digits_of, name_of, shown
from harness.base.text import aligned, counted
from harness.plugins.measurement import Measurement
from harness.studies.experiments.compared import Compared
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.objectives import Judged, value_text
from harness.studies.experiments.specification import Point
from harness.studies.tuning.search import Found, Trial, gain


@dataclass(frozen=True, slots=True)
class Tuned:
    """The result of a tuning.

    `print(tuned)` shows all of these attributes as text.

    Attributes:
        experiment: the experiment with the items of all windows.
        windows: the search window and the held-out window.
        parts: the windows on which trials could be stopped early.
        today: the present value of each searched parameter.
        trials: all trials; the first one is the present configuration.
        winner: the best trial; None if no trial is better than the present configuration.
        held_out: the values of the present configuration and of the winner on the held-out weeks.
        patch: the winner's changes of the manifests, as a patch; empty if there are none.
        items: the first items of the present configuration and of the winner, on the held-out weeks.
        constraints: the constraints in the user's words.
        unmade: whether a replay of the held-out weeks failed.
    """

    experiment: Experiment
    windows: tuple[str, str]
    parts: Sequence[str]
    today: Point
    objectives: Sequence[Measurement]
    trials: Sequence[Trial]
    winner: Trial | None
    held_out: tuple[Found, Found] | None
    patch: Sequence[Mapping[str, Any]]
    items: tuple[int, int] | None
    constraints: Sequence[str]
    unmade: bool

    def __str__(self) -> str:
        return text(self)


def text(found: Tuned, width: int | None = None) -> str:
    """Describes the result on the search and held-out weeks. Tables have at most `width` columns."""
    pruned = sum(each.pruned for each in found.trials)
    failed = sum(each.found is None for each in found.trials) - pruned
    barred = sum(each.found is not None and not each.found.allowed for each in found.trials)
    ended = f", {pruned:,} pruned" if found.parts else ""
    trials = counted(len(found.trials), "trial")
    count = f"{trials}{ended}, {failed:,} failed, {barred:,} violating a constraint"
    if found.winner is None:
        return f"{count}\nno setting is better than the present configuration"
    changed = [
        f"{name}: {value_text(found.today[name])} -> {value_text(value)}"
        for name, value in found.winner.point.items()
        if value != found.today[name]
    ]
    rows = [["objective", "weeks", "today", "winner", "gain"]]
    survives = []
    before, after = found.trials[0].found, found.winner.found
    pairs = [(found.windows[0], (before, after)), (found.windows[1], found.held_out or (None, None))]
    for at, measured in enumerate(found.objectives):
        gains = []
        digits = digits_of(*(each.values[at] for _, pair in pairs for each in pair if each is not None))
        for window, (today, winner) in pairs:
            if today is None or winner is None:
                continue
            values = today.values[at], winner.values[at]
            gains.append(gain(*values, measured.better))
            told = [
                shown(each.values[at], measured.unit, digits, at_least=each.at_least[at])
                for each in (today, winner)
            ]
            rows.append([name_of(measured), window, *told, f"{100 * gains[-1]:+.1f} %"])
        if len(gains) > 1 and gains[0] > 0:
            share = f"{100 * max(0.0, gains[1]) / gains[0]:.0f} %"
            survives.append(f"{name_of(measured)}: {share} of the gain remains on the held-out weeks")
    parts = [count, "\n".join(changed), aligned(rows, left=(0, 1), width=width), "\n".join(survives)]
    if found.unmade:
        parts.append("the held-out weeks cannot be replayed with these values")
    elif found.held_out is None:
        parts.append("on the held-out weeks an objective or a constraint has no value")
    else:
        broken = [
            text
            for text, excess in zip(found.constraints, found.held_out[1].excess, strict=True)
            if excess > 0
        ]
        if broken:
            parts.append(f"on the held-out weeks it violates a constraint: {'; '.join(broken)}")
    if not found.unmade and found.items is not None:
        parts += ["on the held-out weeks:", Compared(Judged(found.experiment), found.items).text(width)]
    return "\n\n".join(part for part in parts if part)
