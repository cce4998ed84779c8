"""Measures a run with all registered metrics. A metric that fails affects neither the run nor the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from decimal import Decimal
from math import isfinite
from numbers import Real
from pathlib import Path
from traceback import extract_tb
from typing import TypeAlias

from harness.base.errors import RunError, is_of_plugin, text_of
from harness.plugins.loading import own_modules
from harness.plugins.measurement import Measurement, Window
from harness.plugins.registries import MetricSpec
from harness.plugins.scopes import parse_scope
from harness.runs.run import Run

_DIRECTIONS = ("higher", "lower", "")

Key: TypeAlias = tuple[str, str, str]
"""A metric, a scope and a resource, which identify a measured value within a run."""


def measure(
    run: Run, metrics: Iterable[MetricSpec], window: Window | None = None
) -> tuple[list[Measurement], dict[str, str]]:
    """Measure a run.

    If two metrics measure the same value, the first one is used and the second one fails. Metrics of harness
    come first. Each metric of another plugin gets its own copy of the run's record, so that it cannot change
    the run.

    By default, `window` is the run's own window.

    Returns:
        The measurements in the order of the metrics. The second value maps each metric that failed to a
        sentence that names the metric and its plugin. The values of failed metrics are dropped.

    Raises:
        RunError: a table of the run is damaged.
    """
    found: dict[str, list[Measurement]] = {}
    failed: dict[str, str] = {}
    known: set[str] = set()
    owners: dict[Key, str] = {}
    specs = list(metrics)
    ours = {module.partition(".")[0] for module in own_modules()}

    def is_ours(spec: MetricSpec) -> bool:
        return spec.module.partition(".")[0] in ours

    with run.asked_much():
        for spec in sorted(specs, key=is_ours, reverse=True):
            try:
                given = run if is_ours(spec) else _lent(run)
                rows = list(_checked(spec.compute(given, window or run.window), known))
                _check_names(spec.name, rows, owners)
            # Catch every error, even `sys.exit`, because the replay is finished and may have taken an hour.
            except BaseException as error:
                if not (isinstance(error, Exception) or is_of_plugin(error)):
                    raise
                if isinstance(error, RunError):
                    _check(run)
                what = text_of(error) or ("not enough memory" if isinstance(error, MemoryError) else "")
                how = f"{type(error).__name__}: {what}{_where(error)}"
                failed[spec.name] = f"metric {spec.name!r} of plugin {spec.owner!r} failed: {how}"
            else:
                found[spec.name] = rows
                owners.update(dict.fromkeys(map(key_of, rows), spec.name))
    return [row for spec in specs for row in found.get(spec.name, ())], failed


def _lent(run: Run) -> Run:
    lent = copy(run)
    lent.info = deepcopy(run.info)
    return lent


def _checked(rows: Iterable[Measurement], known: set[str]) -> Iterator[Measurement]:
    """Yields rows after checking that they are valid for the table. New valid scopes are added to `known`."""
    for row in rows:
        if not isinstance(row, Measurement):
            raise TypeError(f"{row!r} is not a Measurement")
        for text in (row.metric, row.unit, row.better, row.scope, row.resource):
            if not isinstance(text, str):
                raise TypeError(f"{row} has a value that is not a string")
        if not row.metric.strip():
            raise ValueError(f"{row} has no name")
        if row.better not in _DIRECTIONS:
            raise ValueError(
                f"{row.metric}: 'better' is {row.better!r}, not one of {', '.join(map(repr, _DIRECTIONS))}"
            )
        if not isinstance(row.at_least, bool | None):
            raise TypeError(f"{row.metric}: 'at_least' is {row.at_least!r}, not True, False or None")
        if row.scope not in known:
            parse_scope(row.scope)
            known.add(row.scope)
        value = row.value
        if value is None:
            yield row
            continue
        number = value if type(value) is float else _number(row.metric, value)
        if not isfinite(number):
            raise ValueError(f"{row.metric} is {number}; an undefined value must be None")
        yield row if number is value else row._replace(value=number)


def _number(metric: str, value: object) -> float:
    """Returns a number of any type as a float.

    Texts and booleans are rejected, although Python would convert them.
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise TypeError(f"{metric} is {value!r}, which is not a number")
    return float(value)


def key_of(row: Measurement) -> Key:
    """Returns the key of a measured value."""
    return row.metric, row.scope, row.resource


def _check_names(name: str, rows: Sequence[Measurement], owners: Mapping[Key, str]) -> None:
    """Check that no value is measured twice, by this metric or by the `owners` of earlier measurements."""
    seen: set[Key] = set()
    for row in rows:
        key = key_of(row)
        if key in seen or key in owners:
            what = " of ".join(filter(None, (row.metric, row.resource, row.scope)))
            how = f"also measured by metric {owners[key]!r}" if key in owners else "measured twice"
            raise ValueError(f"{what} is {how}")
        seen.add(key)


def _check(run: Run) -> None:
    """Check that the run can be read. If it can, a failure is the fault of the metric."""
    again = Run(run.path, run.info)
    for name in run.info["tables"]:
        again.file(name)


def _where(error: BaseException) -> str:
    """Returns the last line of the plugin's own file in the traceback of an error."""
    frames = extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__]
    last = [frame for frame in own if frame.filename == own[0].filename]
    return f" ({Path(last[-1].filename).name}:{last[-1].lineno})" if last else ""
