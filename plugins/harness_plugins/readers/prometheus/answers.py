"""Converts Prometheus' answers to `query_range`, or to `query` with a range, to samples."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from harness.base.errors import Fault, TraceError
from harness.base.json_text import json_items
from harness.base.units import SECOND
from harness.readers.source import shown, stop_at_many, text_of

Labels = tuple[tuple[str, str], ...]
_FOREIGN = "exported_"
LATEST = 253_402_300_799
"""The last second of the year 9999."""

_ABOUT_EXPORTER = ("job", "instance", "__name__")
_UP = "up"


@dataclass
class Samples:
    """The samples in answers of Prometheus.

    Attributes:
        series: the values by metric, by labels of the series, and by time in microseconds.
        ignored: the number of ignored series by reason.
        warnings: the number of answers with each warning of the server, such as about missing data.
    """

    series: dict[str, dict[Labels, dict[int, float]]] = field(default_factory=dict)
    times: set[int] = field(default_factory=set)
    ignored: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)


def read_answers(paths: list[Path]) -> Samples:
    """Reads the samples of all answers in the files. If answers overlap, the result has each sample once.

    Raises:
        TraceError: the content is not an answer, or an answer is an error. The message lists all faults.
    """
    found = Samples()
    for path in paths:
        faults: list[Fault] = []
        for number, document in enumerate(_documents(path), start=1):
            _answer(document, f"answer {number:,}", found, faults)
            stop_at_many(path, faults)
        if faults:
            raise TraceError(str(path), faults)
    return found


def _documents(path: Path) -> Iterator[Any]:
    try:
        yield from json_items(text_of(path))
    except ValueError as error:
        place = f"line {error.lineno:,}" if isinstance(error, json.JSONDecodeError) else ""
        what = f"is not JSON: {getattr(error, 'msg', error)}"
        raise TraceError(str(path), [Fault(place, what)]) from error


def _answer(document: Any, place: str, found: Samples, faults: list[Fault]) -> None:
    data = document.get("data") if isinstance(document, Mapping) else None
    if isinstance(document, Mapping) and document.get("status") == "error":
        kind, what = (str(document.get(name, ""))[:200] for name in ("errorType", "error"))
        faults.append(Fault(place, f"is an error of the server, {kind}: {what}"))
        return
    if not isinstance(data, Mapping) or not isinstance(data.get("result"), list):
        faults.append(Fault(place, "is not an answer to query or query_range: there is no data.result"))
        return
    warned = document.get("warnings")
    found.warnings.update(dict.fromkeys(map(str, warned if isinstance(warned, list) else ()), 1))
    if data.get("resultType") not in ("matrix", "vector"):
        found.ignored[f"answers of type {shown(str(data.get('resultType')))}"] += 1
        return
    for number, series in enumerate(data["result"], start=1):
        _series(series, f"{place}, series {number:,}", found, faults)


def _series(series: Any, place: str, found: Samples, faults: list[Fault]) -> None:
    metric = series.get("metric") if isinstance(series, Mapping) else None
    if not isinstance(metric, Mapping) or not all(isinstance(value, str) for value in metric.values()):
        faults.append(Fault(place, "has no labels"))
        return
    values = series.get("values", [series["value"]] if "value" in series else None)
    if not isinstance(values, list):
        faults.append(Fault(place, "has no values"))
        return
    samples: dict[int, float] = {}
    for item in values:
        sample = _sample(item)
        if sample is None:
            faults.append(Fault(place, f"{shown(json.dumps(item))} is not a time and a value in quotes"))
            return
        if isfinite(sample[1]):
            samples[sample[0]] = sample[1]
    name = metric.get("__name__")
    if not name:
        found.ignored["series without a name, such as aggregations"] += 1
    elif samples:
        if name != _UP:
            found.times.update(samples)
        found.series.setdefault(name, {}).setdefault(_own(metric), {}).update(samples)


def _sample(item: Any) -> tuple[int, float] | None:
    """Returns the time in microseconds and the value of a pair such as `[1795318779.424, "1"]`."""
    if not (isinstance(item, list) and len(item) == 2 and isinstance(item[1], str)):
        return None
    time = item[0]
    if type(time) not in (int, float) or not 0 <= time <= LATEST:
        return None
    try:
        return round(time * SECOND), float(item[1])
    except ValueError:
        return None


def _own(metric: Mapping[str, str]) -> Labels:
    """Returns the labels that the exporter set, without the labels that the scrape added.

    Without `honor_labels`, a scrape sets its own `namespace` and `pod`, and keeps the exporter's labels as
    `exported_namespace` and `exported_pod`.
    """
    plain = {name: value for name, value in metric.items() if name not in _ABOUT_EXPORTER}
    foreign = {name: value for name, value in plain.items() if name.startswith(_FOREIGN)}
    for name, value in foreign.items():
        del plain[name]
        plain[name.removeprefix(_FOREIGN)] = value
    return tuple(sorted(plain.items()))
