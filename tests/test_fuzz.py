"""Bad input of every kind through the real command line: a whole run and 0, or a named error and 2.

Traces, manifests and options are mutated. Whatever they hold, there is never a traceback, never a message
about a defect of ours, and never a run folder or a part of one after an error.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from cli_environment import called
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.plugins import load
from harness.runs.run import TABLES, Run

_NUMBERS = count()


def fuzz(examples: int) -> settings:
    """So many examples, each a replay in a folder that they share."""
    slow = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
    return settings(max_examples=examples, suppress_health_check=slow)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the command is called."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ends_well(trace: str, *options: str) -> bool:
    """Replays; whether there is a run, after checking that whatever there is is right."""
    output = Path(f"results-{next(_NUMBERS)}")
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = called(["replay", trace, "-o", str(output), *options])
    said = err.getvalue()
    kept = sorted(path for path in output.glob("*/*")) if output.is_dir() else []
    shutil.rmtree(output, ignore_errors=True) if code else None
    assert "Traceback" not in said
    assert code in (0, 2), said
    if code:
        assert out.getvalue() == ""
        assert any(line.startswith("Error: ") for line in said.split("\n")), said
        # Nothing that is built in has errors of its own.
        assert not re.search(r"(policy|reader|plugin) \S+ (failed|cannot be made)", said), said
        assert kept == []
        return False
    (path,) = kept
    run = Run.open(path)
    assert all(run.scan(table).collect() is not None for table in TABLES)
    assert out.getvalue().startswith(("metric ", "{"))
    shutil.rmtree(output)
    return True


# --- traces ------------------------------------------------------------------------------------------------

WHOLE = st.sampled_from(
    [0, 1, -1, 2, 7, 1000, 10**6, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
)
SMALL = st.integers(0, 50)
FLOATS = st.sampled_from([0.0, 1.5, -1.0, float("nan"), float("inf"), float("-inf"), 1e300])
TEXTS = st.sampled_from(
    ["", "a", "b", "default", "\0", "\x1b[2J", "日本", "e\N{COMBINING ACUTE ACCENT}", "x" * 300, "-1"]
)


def column(values: st.SearchStrategy[Any], dtype: Any, *, scale: int = 1) -> st.SearchStrategy[Any]:
    """A series of any length asked for, nulls now and then."""
    return st.tuples(
        st.lists(st.none() | values | values, min_size=6, max_size=6), st.just(dtype), st.just(scale)
    )


def typed(values: list[Any], dtype: Any, scale: int, rows: int) -> pl.Series:
    """The series; what does not fit the type becomes null."""
    scaled = [value * scale if isinstance(value, int) and scale != 1 else value for value in values[:rows]]
    scaled = [
        None if isinstance(value, int) and not -(2**63) <= value < 2**63 and dtype != pl.UInt64 else value
        for value in scaled
    ]
    if isinstance(dtype, (pl.Duration, pl.Datetime)):
        return pl.Series(scaled, dtype=pl.Int64).cast(dtype)
    return pl.Series(scaled, dtype=dtype, strict=False)


WRONG = st.one_of(
    column(FLOATS, pl.Float64),
    column(TEXTS, pl.String),
    column(WHOLE, pl.Int64),
    column(SMALL, pl.UInt64),
    column(SMALL, pl.Int8),
    column(st.booleans(), pl.Boolean),
    column(st.just(None), pl.Null),
    column(SMALL, pl.Date),
    column(SMALL, pl.Time),
    column(st.binary(max_size=4), pl.Binary),
    column(st.lists(SMALL, max_size=2), pl.List(pl.Int64)),
    column(
        st.fixed_dictionaries({"key": TEXTS, "value": TEXTS}),
        pl.Struct({"key": pl.String, "value": pl.String}),
    ),
    column(
        st.lists(st.fixed_dictionaries({"key": TEXTS, "value": TEXTS}), max_size=2),
        pl.List(pl.Struct({"key": pl.String, "value": pl.String})),
    ),
    column(TEXTS, pl.Categorical),
    column(SMALL.map(Decimal), pl.Decimal(20, 2)),
)
DURATIONS = st.one_of(
    column(SMALL, pl.Duration("us"), scale=10**6),
    column(WHOLE, pl.Duration("us")),
    column(WHOLE, pl.Duration("ns")),
    column(WHOLE, pl.Duration("ms")),
)
INSTANTS = st.one_of(
    DURATIONS,
    column(SMALL, pl.Datetime("us", "UTC"), scale=10**6),
    column(WHOLE, pl.Datetime("us")),
    column(WHOLE, pl.Datetime("ms", "Europe/Berlin")),
    column(SMALL, pl.Datetime("ns"), scale=10**9),
)
RIGHT: dict[str, st.SearchStrategy[Any]] = {
    "job_id": st.lists(st.uuids().map(str), min_size=6, max_size=6, unique=True).map(
        lambda ids: (ids, pl.String, 1)
    ),
    "submit_time": column(SMALL, pl.Duration("us"), scale=10**6),
    "duration": column(SMALL, pl.Duration("us"), scale=10**6),
    "queue": column(st.sampled_from(["a", "b"]), pl.String),
    "request.cpu": column(SMALL, pl.Int64, scale=100),
}
FURTHER: dict[str, st.SearchStrategy[Any]] = {
    "request.memory": column(WHOLE, pl.Int64),
    "request.": column(SMALL, pl.Int64),
    "request.a b\n": column(SMALL, pl.Int64),
    "limit.cpu": column(WHOLE, pl.Int64),
    "pods": column(SMALL | WHOLE, pl.Int32),
    "min_pods": column(SMALL, pl.Int32),
    "gang": column(st.booleans(), pl.Boolean),
    "priority": column(WHOLE, pl.Int32),
    "priority_class": column(TEXTS, pl.String),
    "preemption_policy": column(st.sampled_from(["Never", "PreemptLowerPriority", "x"]), pl.String),
    "namespace": column(TEXTS, pl.String),
    "user": column(TEXTS, pl.String),
    "pod_set": column(TEXTS, pl.String),
    "grace_period": DURATIONS,
    "checkpoint_interval": DURATIONS,
    "uid": column(TEXTS, pl.String),
    "tolerations": column(st.sampled_from(["[]", "{}", "[", '[{"key": 1}]', "null", "[" * 9999]), pl.String),
    "affinity": column(st.sampled_from(["{}", '{"nodeAffinity": 3}', "x"]), pl.String),
    "pod_template": column(st.sampled_from(["{}", '{"spec": {"containers": 3}}', "x"]), pl.String),
    "recorded_start": INSTANTS,
    "recorded_end": INSTANTS,
    "harness.arrival": column(WHOLE, pl.Int64),
    **dict.fromkeys(("", "extra", "extra ", "index", "len", "literal", "count", "row", "trace.job"), WRONG),
    **dict.fromkeys(("start_time", "finish_time", "submit", "job", "state", "start", "end", "time"), WRONG),
    **dict.fromkeys(("tenant", "total", "progress", "first_start", "lost", "allocated", "rejected"), WRONG),
}


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """A trace that is right but for a few columns: wrong values, wrong types, missing ones, further ones."""
    rows = draw(st.integers(0, 6))
    columns = {name: draw(values) for name, values in RIGHT.items()}
    for name in draw(st.lists(st.sampled_from(sorted(FURTHER)), max_size=4, unique=True)):
        columns[name] = draw(FURTHER[name])
    if draw(st.booleans()):
        for name in ("submit_time", "duration", "queue", "request.cpu"):
            columns[name] = (
                [value if value is not None else 1 for value in columns[name][0]],
                *columns[name][1:],
            )
        columns["queue"] = (["a" if value == 1 else value for value in columns["queue"][0]], pl.String, 1)
    for name in draw(st.lists(st.sampled_from(sorted(columns)), max_size=2, unique=True)):
        change = draw(st.sampled_from(["absent", "wrong", "values", "renamed"]))
        if change == "absent":
            del columns[name]
        elif change == "wrong":
            columns[name] = draw(WRONG)
        elif change == "renamed":
            columns[draw(TEXTS)] = columns.pop(name)
        elif name in ("submit_time", "recorded_start"):
            columns[name] = draw(INSTANTS)
        elif name == "duration":
            columns[name] = draw(DURATIONS)
        elif name == "job_id":
            columns[name] = draw(column(TEXTS, pl.String))
        elif name == "request.cpu":
            columns[name] = draw(column(WHOLE, pl.Int64))
    return pl.DataFrame([typed(*values, rows).alias(name) for name, values in columns.items()])


@fuzz(200)
@given(
    frame=frames(),
    spoil=st.none() | st.tuples(st.floats(0, 1), st.integers(0, 255)),
    cut=st.none() | st.floats(0, 1),
)
def test_canonical_traces(
    frame: pl.DataFrame, spoil: tuple[float, int] | None, cut: float | None, here: Path
) -> None:
    """Wrong types, nulls, NaN, negative and huge values, duplicates, missing columns, damaged bytes."""
    path = here / "trace.parquet"
    frame.write_parquet(path)
    content = bytearray(path.read_bytes())
    if spoil is not None and cut is not None:
        where, byte = spoil
        content[int(where * (len(content) - 1))] ^= byte
        content = content[: int(cut * len(content)) + 1]
    elif spoil is not None and spoil[1] > 200:
        content[int(spoil[0] * (len(content) - 1))] ^= spoil[1]
    path.write_bytes(content)
    ends_well("trace.parquet")


NUMBER = st.sampled_from(
    ["0", "1", "2", "5", "-1", "1e3", "nan", "-7", "99999999999999999999", "x", "1.5", "", "inf"]
)
GOOD = st.sampled_from(
    ["1 0 5 60 2 -1 -1 2 120 -1 1 3 1 -1 2 -1 -1 -1", "2 30 0 45 4 -1 -1 4 60 900 1 4 1 -1 -1 -1 -1 -1"]
)
LINE = st.one_of(
    GOOD,
    GOOD,
    st.lists(NUMBER, min_size=17, max_size=19).map(" ".join),
    st.sampled_from(
        ["; MaxProcs: 4", "; UnixStartTime: 0", "; UnixStartTime: x", "; MaxProcs: 1e9", ";", "", "\0", "\t "]
    ),
    st.text(max_size=20),
)


@fuzz(100)
@given(lines=st.lists(LINE, max_size=5), end=st.sampled_from(["\n", "\r\n", ""]))
def test_standard_workload_format(lines: list[str], end: str, here: Path) -> None:
    """Lines that are right, too short, too long, or no numbers at all."""
    (here / "log.swf").write_bytes(end.join(lines).encode(errors="replace"))
    ends_well("log.swf")


# --- manifests ---------------------------------------------------------------------------------------------

QUOTA = {"name": "cpu", "nominalQuota": "4", "borrowingLimit": "2", "lendingLimit": "1"}
MANIFESTS: list[dict[str, Any]] = [
    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "default"}},
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "a"},
        "spec": {
            "cohortName": "all",
            "namespaceSelector": {},
            "queueingStrategy": "BestEffortFIFO",
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "fairSharing": {"weight": "2"},
            "resourceGroups": [
                {"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [QUOTA]}]}
            ],
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"zone": "z"}},
        "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "8", "memory": "1Gi", "pods": "10"}},
    },
    {
        "apiVersion": "harness/v1",
        "kind": "NodePool",
        "metadata": {"name": "pool"},
        "spec": {"count": 2, "template": {"status": {"allocatable": {"cpu": 4, "pods": 10}}}},
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 10,
        "globalDefault": True,
        "preemptionPolicy": "Never",
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {
            "nodeName": "n1",
            "priority": 3,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
    },
]
JUNK = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        3,
        10**30,
        1.5,
        float("1e300"),
        "",
        "x",
        "1e999999999",
        "-4",
        "99999999999Ei",
        [],
        {},
        [{}],
        {"name": "a"},
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, the whole first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], junk: Any, *, remove: bool) -> Any:
    """The value with another at one place, or without that place."""
    if not path:
        return junk
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if rest or not remove:
        copy[key] = changed(copy[key], tuple(rest), junk, remove=remove)
    else:
        del copy[key]
    return copy


@st.composite
def manifests(draw: st.DrawFn) -> str:
    """Objects of which one or two places hold something else; now and then the text is damaged too."""
    flavor, queue, *others = MANIFESTS
    node, pool, *_ = others
    chosen: list[Any] = draw(st.sampled_from([[flavor, queue], [node], [pool], [flavor, queue, node]]))
    chosen = [*chosen, *draw(st.lists(st.sampled_from(others), max_size=2))]
    for _ in range(draw(st.integers(0, 2))):
        number = draw(st.integers(0, len(chosen) - 1))
        place = draw(st.sampled_from(places(chosen[number])))
        chosen[number] = changed(chosen[number], place, draw(JUNK), remove=draw(st.booleans()))
    text = "\n---\n".join(map(json.dumps, chosen))
    if draw(st.integers(0, 9)) == 0:
        where = draw(st.integers(0, len(text)))
        text = (
            text[:where]
            + draw(st.text(max_size=3) | st.sampled_from(["&a ", "*a", "? ", "- ", "{", "\t", "!!x "]))
            + text[where:]
        )
    return text


POLICIES = load().policies.names()


@fuzz(150)
@given(text=manifests(), plugin=st.sampled_from(POLICIES))
def test_manifests(text: str, plugin: str, here: Path) -> None:
    """Something else, or nothing, anywhere in the objects; text that is no YAML."""
    trace = here / "trace.parquet"
    if not trace.exists():
        small_trace(trace)
    (here / "cluster.yaml").write_bytes(text.encode(errors="surrogatepass"))
    ends_well("trace.parquet", "--cluster", "cluster.yaml", "-p", plugin)


def small_trace(path: Path) -> None:
    """Jobs of one queue that need two cores each."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    pl.DataFrame(
        {
            "job_id": ["a", "b", "c"],
            "submit_time": [start, start + timedelta(seconds=1), start + timedelta(seconds=2)],
            "duration": [timedelta(seconds=5)] * 3,
            "queue": ["a"] * 3,
            "request.cpu": [2000] * 3,
            "priority": pl.Series([0, 5, 1], dtype=pl.Int32),
        },
        schema_overrides={"submit_time": pl.Datetime("us", "UTC"), "duration": pl.Duration("us")},
    ).write_parquet(path)


# --- options -----------------------------------------------------------------------------------------------

TIMES = ["0", "-1", "2", "7d", "30s", "9999999999w", "0.0000001s", "-5s", "soon", ""]
FACTORS = ["0.5", "1e400", "nan", "inf", "1/3", "1/0", "-2", "0", "x"]
LOSSES = ["restart", "resume", "checkpoint=1s,restore=2s", "checkpoint=", "checkpoint=0", "restore=1s"]
NAMES = [
    "none",
    "none@a",
    "@",
    "none@",
    "none@../x",
    "results",
    "trace.parquet",
    "-",
    "--",
    "--json",
    "\x1b[31m",
]
SETTINGS = [
    "order=fifo",
    "a.order=fifo",
    "none.blocking=strict",
    "borrow=maybe",
    "order=",
    "=",
    ".=",
    "a..order=x",
]
VALUE = st.sampled_from([*TIMES, *FACTORS, *LOSSES, *NAMES, *SETTINGS]) | st.text(max_size=8).filter(
    lambda text: "\0" not in text
)
OPTION = st.sampled_from(
    [
        "--plugin",
        "-p",
        "--set",
        "--until",
        "--grace-period",
        "--on-preemption",
        "--scale-arrivals",
        "--cluster",
        "--nothing",
        "-z",
    ]
)


@fuzz(200)
@given(
    options=st.lists(st.tuples(OPTION, VALUE), max_size=4),
    flags=st.lists(st.sampled_from(["--json", "-q", "--force"]), max_size=2),
)
@example(options=[("--scale-arrivals", "1/1000000"), ("--until", "9000000w")], flags=[])
def test_options(options: list[tuple[str, str]], flags: list[str], here: Path) -> None:
    """Values of any kind for every option of a replay, repeated, misspelt and misplaced."""
    trace = here / "trace.parquet"
    if not trace.exists():
        small_trace(trace)
    plugins = [value for option, value in options if option in ("-p", "--plugin")]
    given_options = [part for option, value in options for part in (option, value)]
    if len(plugins) > 1:  # one run is looked for
        return
    ends_well("trace.parquet", *given_options, *flags)
