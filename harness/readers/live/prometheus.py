"""Reads raw samples of kube-state-metrics from Prometheus. A query with coarse steps would miss pods.

https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from harness.base.errors import InputError, why
from harness.base.json_text import mapping_of
from harness.readers.live.answers import BeyondError, UnreachedError
from harness.readers.live.http import HttpReader, RefusedError, is_transient, live_module

METRICS = (
    "kube_pod_created", "kube_pod_status_scheduled_time", "kube_pod_start_time", "kube_pod_completion_time",
    "kube_pod_status_phase", "kube_pod_owner", "kube_pod_labels", "kube_pod_info",
    "kube_pod_container_resource_requests", "kube_pod_init_container_resource_requests", "kube_job_created",
    "kube_job_labels",
)  # fmt: skip
"""The metrics from which the reader `prometheus` creates pods."""

SELECTOR = 'job="kube-state-metrics"'
_PHASE = "kube_pod_status_phase"
_TRIES = 6
_LONGEST = 30.0
_LEAST = 15
"""The length of the shortest piece in seconds. If even such a piece is too much, the query fails."""

_MOST_PIECES = 20_000
"""The maximum number of pieces for one metric, which covers two years in pieces of an hour.

More pieces suggest a wrong date.
"""

_TOO_MUCH = ("exceeded maximum resolution", "too many samples", "timed out", "too large")


class Page(NamedTuple):
    """An answer to a query."""

    metric: str
    answer: Any
    series: int
    samples: int


def connect(address: str, header_file: Path | None = None) -> HttpReader:
    """Connect to a Prometheus server, or to a server with the same API.

    Args:
        address: the URL of the server, which may include a path before `/api/v1`.
        header_file: a file with lines `Name: value` to send with every request, such as `Authorization`.

    Raises:
        InputError: the extra `live` is not installed, or the address or the file is invalid.
    """
    library = live_module("httpx2")
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"{_shown(address)} is not the address of a server", hint="for example http://prometheus:9090"
        )
    if "@" in parts.netloc:
        raise InputError(
            "the address contains a password, which many programs would show",
            hint="write 'Authorization: Basic ...' into a file and name the file with --header-file",
        )
    headers = {} if header_file is None else _headers(header_file)
    return HttpReader(library.Client(base_url=address, headers=headers), _error)


def fetch(
    http: HttpReader,
    begin: int,
    end: int,
    *,
    window: int,
    selector: str = SELECTOR,
    metrics: Iterable[str] = METRICS,
    step: int | None = None,
    haste: float = 1.0,
) -> Iterator[Page]:
    """Yields the samples of all metrics between two times, one window after the other.

    If an answer would be too large for the server, harness requests each half of its time span separately. A
    request that fails temporarily is repeated up to six times. If the first request gets no answer, the
    address is refused immediately.

    `begin` and `end` are seconds since 1970, and one answer covers `window` seconds. `selector` has label
    matchers without braces. If `step` is None, all scraped samples are requested. `haste` divides the waits
    before new attempts.

    Raises:
        InputError: the server cannot be reached, refuses, or sends an invalid answer, or the time
            span has too many pieces.
    """
    pieces = -(-(end - begin) // window)
    if pieces > _MOST_PIECES:
        raise InputError(
            f"this time span needs {pieces:,} requests per metric, but at most {_MOST_PIECES:,} are allowed",
            hint="give a longer --window, or a shorter time span",
        )
    answered = False
    for metric in metrics:
        at, size = begin, window
        while at < end:
            until = min(at + size, end)
            ask = partial(_query, http, f"{metric}{{{selector}}}", at, until, step)
            try:
                answer = _asked(ask, haste, answered=answered)
            except RefusedError as error:
                if size > _LEAST and any(word in error.what for word in _TOO_MUCH):
                    size = max(_LEAST, size // 2)
                    continue
                raise InputError(f"{metric}: {error}", hint=_hint(error)) from error
            except BeyondError as error:
                if size > _LEAST:
                    size = max(_LEAST, size // 2)
                    continue
                raise InputError(f"{metric}: {error}") from error
            except UnreachedError as error:
                raise InputError(f"the server does not answer: {error}") from error
            answered = True
            yield _page(metric, answer)
            at = until


def _query(http: HttpReader, query: str, begin: int, end: int, step: int | None) -> Any:
    if step is None:
        params = {"query": f"{query}[{end - begin}s]", "time": str(end)}
        return http.get("api/v1/query", params, patience=180.0)
    params = {"query": query, "start": str(begin), "end": str(end), "step": str(step)}
    return http.get("api/v1/query_range", params, patience=180.0)


def _asked(ask: Callable[[], Any], haste: float, *, answered: bool) -> Any:
    """Returns an answer after at most six attempts.

    There is only one attempt if no earlier request was answered.
    """
    for number in range(_TRIES):
        try:
            return ask()
        except (RefusedError, UnreachedError) as error:
            too_much = isinstance(error, RefusedError) and any(word in error.what for word in _TOO_MUCH)
            nobody = isinstance(error, UnreachedError) and not answered
            if number == _TRIES - 1 or too_much or nobody or not is_transient(error):
                raise
            time.sleep(min(_LONGEST, 2.0**number) / haste)
    raise AssertionError


def _page(metric: str, answer: Any) -> Page:
    data = mapping_of(answer, "data")
    result = data.get("result")
    if not isinstance(result, list):
        raise InputError(
            f"{metric}: the answer is not from Prometheus: it has no data.result",
            hint="is it the address before /api/v1/query?",
        )
    for number, series in enumerate(result, 1):
        if not is_series(series):
            raise InputError(
                f"{metric}: series {number:,} of the answer is not from Prometheus: labels in `metric` and "
                "samples [time, text] in `values` are expected",
                hint="send the same query with curl to see what the server answers",
            )
    if metric == _PHASE:  # for each phase that applies, four other series have zeros
        result = [kept for each in result if (kept := _of_ones(each))]
        answer = {**answer, "data": {**data, "result": result}}
    samples = sum(len(each["values"]) for each in result)
    return Page(metric, answer, len(result), samples)


def is_series(series: Any) -> bool:
    """Returns True if a value is a series over a range of time whose samples are numbers written as text."""
    if not isinstance(series, Mapping) or not isinstance(series.get("metric"), Mapping):
        return False
    values = series.get("values")
    return isinstance(values, list) and all(
        isinstance(each, list)
        and len(each) == 2
        and isinstance(each[0], (int, float))
        and isinstance(each[1], str)
        for each in values
    )


def _of_ones(series: Mapping[str, Any]) -> Mapping[str, Any] | None:
    values = [each for each in series["values"] if each[1] != "0"]
    return {**series, "values": values} if values else None


def _headers(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {why(error, 'it is not UTF-8 text')}") from error
    found = {}
    for number, line in enumerate(lines, start=1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip().replace("-", "").isalnum() or not line.isascii():
            raise InputError(
                f"{path}, line {number} is not a header",
                hint="write a header such as Authorization: Bearer ...",
            )
        found[name.strip()] = value.strip()
    return found


def _hint(error: RefusedError) -> str | None:
    if error.status in (401, 403):
        return "give the credentials that it requires with --header-file"
    return "is it the address before /api/v1/query?" if error.status == 404 else None


def _error(answer: Any) -> str:
    return str(answer.get("error") or "") if isinstance(answer, Mapping) else ""


def _shown(address: str) -> str:
    return repr(address if "@" not in address else "what is given")
