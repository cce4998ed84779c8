"""Which runs compare: those of one trace with the same arrivals on one cluster; and what they are called."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from harness.errors import RunError
from harness.options import did_you_mean
from harness.runs.run import Run
from harness.units import format_amount


def names_of(runs: Sequence[Run], *, taken: Container[str] = ()) -> list[str]:
    """A name for each run, all different: its label, else its folder's name, else its path.

    Args:
        runs: the runs.
        taken: what no run may be called.

    Raises:
        RunError: one is given twice.
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
    """Which run a baseline is, by its name, its label or its folder's name."""
    for known in (names, [run.label for run in runs], [run.info["run"] for run in runs]):
        if baseline in known:
            return known.index(baseline)
    raise RunError(f"no run is called {baseline!r}", hint=did_you_mean(baseline, names))


def check_comparable(runs: Sequence[Run]) -> None:
    """Refuse runs of different traces, clusters or arrivals, and say what differs."""
    first = runs[0]
    found = [f"  {run.path}: {what}" for run in runs[1:] for what in _differences(first, run)]
    if found:
        raise RunError(
            "\n".join([f"these runs do not compare with {first.path}:", *found]),
            hint="replay one trace on one cluster: harness replay TRACE --plugin A --plugin B",
        )


def _differences(first: Run, run: Run) -> Iterator[str]:
    ours, theirs = first.info, run.info
    if ours["trace"]["sha256"] != theirs["trace"]["sha256"]:
        yield f"another trace: {_trace(theirs)}, not {_trace(ours)}"
    elif ours["cluster"]["sha256"] != theirs["cluster"]["sha256"]:
        differing = ", ".join(_cluster_differences(ours["cluster"], theirs["cluster"]))
        yield f"another cluster: {differing or 'of the same size, but its manifests say something else'}"
    scales = [info["settings"]["scale_arrivals"] for info in (ours, theirs)]
    if scales[0] != scales[1]:
        yield f"arrivals are scaled by {scales[1]}, not by {scales[0]}"
    changes = [_calibration(info["settings"]) for info in (ours, theirs)]
    if changes[0] != changes[1]:
        yield f"the trace is calibrated by {changes[1]}, not by {changes[0]}"


def _calibration(settings: Mapping[str, Any]) -> str:
    """What was changed of the trace before the replay, as options."""
    changed = settings.get("calibration", {})
    return " ".join(f"--{name.replace('_', '-')} {text}" for name, text in changed.items()) or "nothing"


def _trace(info: Mapping[str, Any]) -> str:
    trace = info["trace"]
    return f"{trace['name']} ({trace['jobs']:,} jobs, sha256 {trace['sha256'][:8]}…)"


def _cluster_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """What differs at a glance: the number of nodes, the size, the queues."""
    if ours["nodes"] != theirs["nodes"]:
        yield f"{theirs['nodes']:,} nodes, not {ours['nodes']:,}"
    for resource in sorted({*ours["capacity"], *theirs["capacity"]}):
        sizes = [format_amount(resource, each["capacity"].get(resource, 0)) for each in (ours, theirs)]
        if sizes[0] != sizes[1]:
            yield f"{resource} {sizes[1]}, not {sizes[0]}"
    queues = [each["queues"] for each in (ours, theirs)]
    names = sorted({*queues[0], *queues[1]})
    differing = [name for name in names if queues[0].get(name) != queues[1].get(name)]
    if differing:
        more = f" and {len(differing) - 3:,} more" if len(differing) > 3 else ""
        yield f"queues differ: {', '.join(differing[:3])}{more}"
