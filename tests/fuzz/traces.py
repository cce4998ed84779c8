"""Traces in the canonical schema of which columns, types, values, nulls or bytes were changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from io import BytesIO
from random import Random
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from fuzz.junk import HOSTILE, INT64, damaged, junk

SECOND = 1_000_000
QUEUES = ("a", "b", "c")
_Columns = dict[str, pl.Series]


def trace(random: Random) -> bytes:
    """A small trace, one to three things of which are wrong, or at the edge."""
    rows = random.choice((1, 2, 3, 5, 8, 12, 0) if random.randrange(8) == 0 else (2, 3, 5, 8, 12))
    columns = whole(rows, random)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        random.choice(_CHANGES)(columns, random)
    metadata = _metadata(random) if random.randrange(12) == 0 else {}
    data = written(pl.DataFrame(list(columns.values())), metadata)
    return damaged(data, random, text=False) if random.randrange(10) == 0 else data


def named(random: Random) -> bytes:
    """A trace without a fault whose names of jobs, queues, users and the like are hostile."""
    rows = random.choice((2, 4, 8))
    columns = whole(rows, random)
    for name in random.sample(("queue", "user", "namespace", "job_id", "priority_class", "tenant"), 3):
        texts = [random.choice(HOSTILE).replace("\0", "x") or "x" for _ in range(rows)]
        if name == "job_id":
            texts = [f"{text}{number}" for number, text in enumerate(texts)]
        if name != "priority_class":
            columns[name] = pl.Series(name, texts)
    if random.randrange(3) == 0:
        resource = random.choice([text for text in HOSTILE if text and "\0" not in text])
        columns["request"] = pl.Series(f"request.{resource}", [1] * rows)
    return written(pl.DataFrame(list(columns.values())))


def whole(rows: int, random: Random) -> _Columns:
    """The columns of a trace without a fault, with some of the optional ones; it fits a small cluster."""
    few = random.choice(((1, 2), (1, 5, 30), (1,)))

    def each(name: str, values: tuple[Any, ...], dtype: Any) -> pl.Series:
        return pl.Series(name, [random.choice(values) for _ in range(rows)], dtype=dtype)

    def span(name: str, values: tuple[int, ...]) -> pl.Series:
        numbers = [random.choice(values) * SECOND for _ in range(rows)]
        return pl.Series(name, numbers, dtype=pl.Int64).cast(pl.Duration("us"))

    columns = {
        "job_id": pl.Series("job_id", [f"j{number}" for number in range(rows)], dtype=pl.String),
        "submit_time": span("submit_time", (0, *few)),
        "duration": span("duration", (0, 5, 7, 60, 3600)),
        "queue": each("queue", QUEUES[: random.choice((1, 2, 3))], pl.String),
        "request.cpu": each("request.cpu", (0, 100, 1000, 2000, 4000), pl.Int64),
    }
    if random.randrange(2):
        submit = columns["submit_time"].to_physical() + 1_767_225_600 * SECOND
        columns["submit_time"] = submit.cast(pl.Datetime("us", random.choice((None, "UTC")))).alias(
            "submit_time"
        )
    optional: dict[str, Callable[[], pl.Series]] = {
        "request.memory": lambda: each("request.memory", (0, 2**20, 2**30, None), pl.Int64),
        "request.nvidia.com/gpu": lambda: each("request.nvidia.com/gpu", (0, 1, 2), pl.Int64),
        "pods": lambda: each("pods", (1, 2, 3, None), pl.Int32),
        "min_pods": lambda: each("min_pods", (1, None), pl.Int32),
        "gang": lambda: each("gang", (True, False, None), pl.Boolean),
        "priority": lambda: each("priority", (0, 5, -3, 1000, None), pl.Int32),
        "priority_class": lambda: each("priority_class", ("high", None), pl.String),
        "preemption_policy": lambda: each("preemption_policy", ("Never", "PreemptLowerPriority"), pl.String),
        "namespace": lambda: each("namespace", ("default", "team"), pl.String),
        "user": lambda: each("user", ("ann", "bob", None), pl.String),
        "uid": lambda: each("uid", ("u1", "u2", None), pl.String),
        "grace_period": lambda: span("grace_period", (0, 1, 30)),
        "checkpoint_interval": lambda: span("checkpoint_interval", (1, 60)),
        "limit.cpu": lambda: each("limit.cpu", (1000, 4000, None), pl.Int64),
        "labels": lambda: _labels("labels", rows, random),
        "node_selector": lambda: _labels("node_selector", rows, random),
        "tolerations": lambda: each("tolerations", _TOLERATIONS, pl.String),
        "affinity": lambda: each("affinity", _AFFINITIES, pl.String),
        "pod_template": lambda: each("pod_template", _TEMPLATES, pl.String),
        "note": lambda: each("note", ("x", "y", None), pl.String),
    }
    for name in random.sample(sorted(optional), random.choice((0, 1, 1, 2, 4))):
        columns[name] = optional[name]()
    if rows > 2 and random.randrange(6) == 0:  # a job of two pod sets
        columns["pod_set"] = pl.Series("pod_set", ["main", "side"] + ["main"] * (rows - 2))
        for name, series in columns.items():
            if name not in ("pod_set", "pods", "min_pods") and not name.startswith(("request.", "limit.")):
                columns[name] = pl.concat([series.head(1), series.head(1), series.slice(2)])
    return columns


def written(frame: pl.DataFrame, metadata: dict[str, str] | None = None) -> bytes:
    """A frame as Parquet."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    file = BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata or {}), file)
    return file.getvalue()


# --- what is changed ---------------------------------------------------------------------------------------


def _absent(columns: _Columns, random: Random) -> None:
    del columns[random.choice(sorted(columns))]


def _renamed(columns: _Columns, random: Random) -> None:
    name = random.choice(sorted(columns))
    new = random.choice((*HOSTILE, *_RESERVED)).replace("\0", "0")
    columns[name] = columns[name].alias(new)
    _once(columns)


def _once(columns: _Columns) -> None:
    """Parquet would hold two columns of one name; polars does not make such a frame."""
    seen: set[str] = set()
    for key in list(columns):
        if columns[key].name in seen:
            del columns[key]
        else:
            seen.add(columns[key].name)


def _value(columns: _Columns, random: Random) -> None:
    """One value, or all of a column, becomes one at the edge of its type."""
    name = random.choice(sorted(columns))
    series = columns[name]
    rows = len(series)
    if not rows:
        return
    physical = series.cast(pl.String) if series.dtype == pl.Categorical else series.to_physical()
    others = random.choice(([random.randrange(rows)], range(rows)))
    if physical.dtype.is_integer():
        least, most = (pl.select(end).item() for end in (physical.dtype.min(), physical.dtype.max()))
        edge = [number for number in (*INT64, 2**40, 2**50, 2**57, 2**59, 2**60) if least <= number <= most]
        values = physical.to_list()
        one = random.choice(edge)
        for place in others:
            values[place] = one if random.randrange(3) else random.choice(edge)
        with suppress(pl.exceptions.PolarsError):  # not every number is a time of day
            columns[name] = pl.Series(values, dtype=physical.dtype).cast(series.dtype).alias(series.name)
    elif physical.dtype == pl.String:
        texts = (*HOSTILE, *(json.dumps(junk(random)) for _ in range(3)), "[" * 9999, '{"a":' * 200)
        values = physical.to_list()
        for place in others:
            values[place] = random.choice(texts)
        columns[name] = pl.Series(series.name, values, dtype=pl.String)


def _nulls(columns: _Columns, random: Random) -> None:
    name = random.choice(sorted(columns))
    series = columns[name]
    rows = len(series)
    keep = [bool(random.randrange(2)) and bool(random.randrange(3)) for _ in range(rows)]
    if random.randrange(2) and rows:
        keep = [True] * rows
        keep[random.randrange(rows)] = False
    if random.randrange(4) == 0:
        keep = [False] * rows
    columns[name] = (
        pl.select(pl.when(pl.Series(keep, dtype=pl.Boolean)).then(series)).to_series().alias(series.name)
    )


def _typed(columns: _Columns, random: Random) -> None:
    """Values of quite another type."""
    name = random.choice(sorted((*columns, *_OTHER_NAMES)))
    make = random.choice(_OTHER_TYPES)
    series = make(max(map(len, columns.values())), random)
    columns[name] = series.alias(columns[name].name if name in columns else name)
    _once(columns)


def _cast(columns: _Columns, random: Random) -> None:
    """The same values in another type that holds them, or nearly."""
    name = random.choice(sorted(columns))
    for dtype in random.sample(_CASTS, len(_CASTS)):
        try:
            columns[name] = columns[name].cast(dtype)
        except pl.exceptions.PolarsError:
            continue
        return


def _rows(columns: _Columns, random: Random) -> None:
    """Rows are there again, many times, or all are gone."""
    rows = max(map(len, columns.values()))
    times = random.choice((0, 2, 3, 40))
    for name, series in columns.items():
        columns[name] = pl.concat([series] * times) if times else series.clear()
    if times > 1 and random.randrange(2):
        ids = [f"k{number}" for number in range(rows * times)]
        if "job_id" in columns and "pod_set" not in columns:
            columns["job_id"] = pl.Series(columns["job_id"].name, ids)


def _large(columns: _Columns, random: Random) -> None:
    """Amounts, times or pods of which each is fine and all together are not."""
    for name in random.sample(sorted(columns), len(columns)):
        if name.startswith("request.") and columns[name].dtype.is_integer():
            amount = random.choice(
                (2**45, 2**52, 2**57, 2**60, 2**61, 2**62, 2**63 - 1, 2**63 // max(len(columns[name]), 2))
            )
            columns[name] = pl.Series(columns[name].name, [amount] * len(columns[name]), dtype=pl.Int64)
            return
        if name == "duration" and columns[name].dtype == pl.Duration:
            longest = 100 * 365 * 86_400 * SECOND
            span = random.choice((longest, longest + 1, 2**53, 2**62, 2**63 - 1, longest // 2))
            spans = pl.Series([span] * len(columns[name]), dtype=pl.Int64)
            columns[name] = spans.cast(pl.Duration("us")).alias(columns[name].name)
            return


_CHANGES = (
    _absent,
    _renamed,
    _value,
    _value,
    _value,
    _nulls,
    _nulls,
    _typed,
    _typed,
    _cast,
    _rows,
    _large,
    _large,
)

_RESERVED = (
    "request.", "limit.", "request.pods", "harness.x", "state", "time", "tenant", "count", "len", "literal",
    "index", "row", "trace.job", "start_time", "submit", "job", "request.a b\n", "request.cpu ",
    "recorded_end",
)  # fmt: skip
_OTHER_NAMES = (
    "recorded_start", "recorded_end", "requested_time", "extra", "priority", "pods", "user", "limit.cpu",
    "labels", "harness.arrival",
    "finish_time", "state", "submit", "index", "request.memory",
)  # fmt: skip


def _labels(name: str, rows: int, random: Random) -> pl.Series:
    entry = pl.Struct({"key": pl.String, "value": pl.String})
    keys = (
        "app",
        "pod-group.scheduling.sigs.k8s.io",
        "pod-group.scheduling.sigs.k8s.io/min-available",
        "zone",
    )
    values = [
        [
            {"key": key, "value": random.choice(("x", "z", "2", ""))}
            for key in random.sample(keys, random.randrange(3))
        ]
        for _ in range(rows)
    ]
    return pl.Series(name, values, dtype=pl.List(entry))


def _numbers(dtype: Any, values: tuple[Any, ...]) -> Callable[[int, Random], pl.Series]:
    def make(rows: int, random: Random) -> pl.Series:
        return pl.Series([random.choice((*values, None)) for _ in range(rows)], dtype=dtype, strict=False)

    return make


def _times(dtype: Any, values: tuple[int, ...] = INT64) -> Callable[[int, Random], pl.Series]:
    def make(rows: int, random: Random) -> pl.Series:
        numbers = [random.choice((*values, 0, 10**15, None)) for _ in range(rows)]
        return pl.Series(numbers, dtype=pl.Int64).cast(dtype)

    return make


_FEW = (0, 1, 5, 50)
_OTHER_TYPES: tuple[Callable[[int, Random], pl.Series], ...] = (
    _numbers(pl.Float64, (0.0, 1.5, -1.0, float("nan"), float("inf"), 1e300)),
    _numbers(pl.Float32, (0.0, 2.0)),
    _numbers(pl.String, HOSTILE),
    _numbers(pl.Int64, INT64),
    _numbers(pl.Int64, _FEW),
    _numbers(pl.UInt64, (*_FEW, 2**63, 2**64 - 1)),
    _numbers(pl.Int8, (0, 1, -1)),
    _numbers(pl.Int32, _FEW),
    _numbers(pl.Boolean, (True, False)),
    _numbers(pl.Null, (None,)),
    _numbers(pl.Date, _FEW),
    _numbers(pl.Time, _FEW),
    _numbers(pl.Binary, (b"", b"\xff", b"abc")),
    _numbers(pl.Decimal(20, 2), (Decimal(0), Decimal("1.5"))),
    _numbers(pl.List(pl.Int64), ([], [1], [None])),
    _numbers(pl.Struct({"key": pl.String, "value": pl.String}), ({"key": "a", "value": None},)),
    _numbers(
        pl.List(pl.Struct({"key": pl.String, "value": pl.String})),
        ([], [{"key": "a", "value": None}], [{"key": None, "value": "b"}], [{"key": "a", "value": "b"}] * 2),
    ),
    _numbers(pl.Categorical, HOSTILE),
    _numbers(pl.Array(pl.Int64, 2), ([1, 2],)),
    _times(pl.Duration("us")),
    _times(pl.Duration("ns")),
    _times(pl.Duration("ms")),
    _times(pl.Datetime("us")),
    _times(pl.Datetime("us", "UTC")),
    _times(pl.Datetime("ms", "Europe/Berlin"), _FEW),
    _times(pl.Datetime("ns")),
)
_CASTS = (
    pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt64, pl.Float64, pl.String, pl.Categorical,
    pl.Duration("ns"), pl.Duration("ms"), pl.Datetime("ns"), pl.Datetime("ms"),
)  # fmt: skip

_TOLERATIONS = (
    "[]", '[{"operator": "Exists"}]', '[{"key": "k", "value": "v", "effect": "NoSchedule"}]', "{}", "null",
    "[1]", '[{"key": 1}]', None,
)  # fmt: skip
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
_APART = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
_AFFINITIES = (
    "{}", '{"nodeAffinity": 3}', "x", json.dumps({"podAntiAffinity": {_REQUIRED: [_APART]}}),
    json.dumps({"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [_ZONE]}}}), None,
)  # fmt: skip
_TEMPLATES = (
    "{}", '{"spec": {"containers": 3}}', '{"spec": 3}', '{"metadata": {"labels": 3}}', '{"metadata": 3}',
    "[]", '{"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}',
    '{"metadata": {"name": "p", "labels": {"app": "x"}}, "spec": {"nodeName": "n1", "containers": []}}',
    '{"nodeSelector": 3}', '{"spec": {"nodeSelector": [1]}}', None,
)  # fmt: skip


def _metadata(random: Random) -> dict[str, str]:
    """Key-value pairs of a trace file, some of which mean something."""
    values = ("1", "2", "", "x", "[]", "{}", '["a"]', '{"a": 1}', "[" * 5000, "9" * 30, "-1", "\u2028")
    keys = (
        "harness.schema", "harness.source", "harness.license", "harness.conventions", "harness.left_out",
        "harness.capacity.cpu", "harness.capacity.memory", "harness.x",
    )  # fmt: skip
    return {key: random.choice(values) for key in random.sample(keys, 2)}
