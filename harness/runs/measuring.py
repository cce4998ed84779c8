"""Measures a run with every registered metric; one that fails takes neither the run nor others with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from traceback import extract_tb

from harness.errors import RunError, is_of_plugin, text_of
from harness.metrics.measurement import Measurement, Window
from harness.metrics.scopes import parse_scope
from harness.registries import MetricSpec
from harness.runs.run import Run


def measure(
    run: Run, metrics: Iterable[MetricSpec], window: Window | None = None
) -> tuple[list[Measurement], dict[str, str]]:
    """What metrics say of a run.

    Args:
        run: the run.
        metrics: who measures.
        window: what to measure; the run's own by default.

    Returns:
        What was measured; and metric -> a sentence that names it and its plugin, for those that failed, of
        which nothing is kept.

    Raises:
        RunError: a table of the run is damaged.
    """
    found: list[Measurement] = []
    failed: dict[str, str] = {}
    known: set[str] = set()
    with run.asked_much():
        for spec in metrics:
            try:
                found += list(_checked(spec.compute(run, window or run.window), known))
            # Whatever it is, `sys.exit` too: the replay was made, and may have taken an hour.
            except BaseException as error:
                if not (isinstance(error, Exception) or is_of_plugin(error)):
                    raise
                if isinstance(error, RunError):
                    _check(run)
                what = text_of(error) or ("not enough memory" if isinstance(error, MemoryError) else "")
                how = f"{type(error).__name__}: {what}{_where(error)}"
                failed[spec.name] = f"metric {spec.name!r} of plugin {spec.owner!r} failed: {how}"
    return found, failed


def _checked(rows: Iterable[Measurement], known: set[str]) -> Iterator[Measurement]:
    """Rows that fit into the table.

    Args:
        rows: what a metric answers.
        known: scopes that are of a known kind; those that are found here come to them.

    Raises:
        TypeError: what stands there is no measurement.
        OptionError: a scope is of no known kind.
    """
    for row in rows:
        for text in (row.metric, row.unit, row.better, row.scope, row.resource):
            if not isinstance(text, str):
                raise TypeError(f"{row} has something else where a text belongs")
        if row.scope not in known:
            parse_scope(row.scope)
            known.add(row.scope)
        value = row.value
        yield row if value is None or type(value) is float else row._replace(value=float(value))


def _check(run: Run) -> None:
    """That it is not the run itself that cannot be read."""
    again = Run(run.path, run.info)
    for name in run.info["tables"]:
        again.file(name)


def _where(error: BaseException) -> str:
    """The last line of the plugin's own file that the error came through."""
    frames = extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__]
    last = [frame for frame in own if frame.filename == own[0].filename]
    return f" ({Path(last[-1].filename).name}:{last[-1].lineno})" if last else ""
