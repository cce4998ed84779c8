"""Chooses names for the compared runs."""

from __future__ import annotations

from collections.abc import Container, Sequence

from harness.base.errors import RunError
from harness.base.options import did_you_mean
from harness.runs.run import Run


def names_of(runs: Sequence[Run], *, taken: Container[str] = ()) -> list[str]:
    """Returns a distinct name for each run: its label, or else its folder's name, or else the folder's path.

    A label is not used if several runs have it, or if it is in `taken`. The same applies to the names of
    folders.

    Raises:
        RunError: a run is given twice.
    """
    places = [run.path.resolve() for run in runs]
    for place, run in zip(places, runs, strict=True):
        if places.count(place) > 1:
            raise RunError(f"{run.path} is given twice")
    names = [run.label for run in runs]
    for other in (lambda run: run.info["run"], lambda run: str(run.path)):
        names = [
            other(run) if names.count(name) > 1 or name in taken else name
            for name, run in zip(names, runs, strict=True)
        ]
    return names


def place_of(baseline: str, runs: Sequence[Run], names: Sequence[str]) -> int:
    """Returns the index of the baseline, which is given by name, label, folder, or the name of the folder."""
    folders = [str(run.path) for run in runs]
    for known in (names, [run.label for run in runs], [run.info["run"] for run in runs], folders):
        if baseline in known:
            return known.index(baseline)
    raise RunError(f"no run is named {baseline!r}", hint=did_you_mean(baseline, names))
