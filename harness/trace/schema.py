"""Defines the canonical schema of a trace, version 1, with the type, default and meaning of each column.

Validation, conversion and the documentation all use this table. Columns outside the schema are kept
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import polars as pl

from harness.base.values import Value, fixed

VERSION = "1"
VERSION_KEY = "harness.schema"
SOURCE_KEY = "harness.source"
LICENSE_KEY = "harness.license"
CONVENTIONS_KEY = "harness.conventions"
LEFT_OUT_KEY = "harness.left_out"

REQUEST = "request."
LIMIT = "limit."
STARTUP = "startup"
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
DEFAULT_NAMESPACE = "default"
DEFAULT_POD_SET = "main"


class Kind(Enum):
    """The type of a column. Its value is the name of the type in the schema."""

    STRING = "string"
    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"
    DURATION = "duration[us]"
    TIME = "timestamp[us] or duration[us]"
    MAP = "map<string, string>"

    def takes(self, dtype: pl.DataType) -> bool:
        """Returns True if a column of type `dtype` can be stored as this kind.

        The width of integers, the unit of times and the type of texts don't matter.
        """
        match self:
            case Kind.STRING:
                return dtype in (pl.String, pl.Categorical, pl.Enum)
            case Kind.INT32 | Kind.INT64:
                return dtype.is_integer()
            case Kind.BOOL:
                return dtype == pl.Boolean
            case Kind.DURATION:
                return dtype == pl.Duration
            case Kind.TIME:
                return dtype in (pl.Datetime, pl.Duration)
            case Kind.MAP:
                return is_map(dtype)

    def stored(self, dtype: pl.DataType) -> pl.DataType:
        """Returns the type that a frame uses for this kind, given a type that the kind accepts."""
        match self:
            case Kind.STRING:
                return pl.String()
            case Kind.INT32:
                return pl.Int32()
            case Kind.INT64:
                return pl.Int64()
            case Kind.TIME if isinstance(dtype, pl.Datetime):
                return pl.Datetime("us", dtype.time_zone)
            case Kind.TIME | Kind.DURATION:
                return pl.Duration("us")
            case Kind.BOOL | Kind.MAP:
                return dtype


@fixed()
class Column(Value):
    """One column of the schema.

    Attributes:
        meaning: the meaning of the column, with its unit.
        default: the meaning of an absent column or a null, in words, or None if a value is required.
        of_pod_set: whether the rows of a job, which are its pod sets, may differ in this column.
        recurs: whether many rows repeat the same few texts. A frame stores such texts as categories.
    """

    name: str
    kind: Kind
    meaning: str
    default: str | None = ""
    of_pod_set: bool = False
    recurs: bool = False

    def stored(self, dtype: pl.DataType) -> pl.DataType:
        """Returns the type that a frame uses for the column, given a type that its kind accepts."""
        return pl.Categorical() if self.recurs else self.kind.stored(dtype)


def _of_pod_set(name: str, kind: Kind, meaning: str, default: str = "", *, recurs: bool = False) -> Column:
    return Column(name, kind, meaning, default, of_pod_set=True, recurs=recurs)


COLUMNS: tuple[Column, ...] = (
    Column("job_id", Kind.STRING, "the job's name, unique (together with pod_set)", None),
    Column(
        "submit_time", Kind.TIME, "when the job was submitted; a duration is relative to the origin", None
    ),
    Column("duration", Kind.DURATION, "run time of one undisturbed run", None),
    Column(
        "queue",
        Kind.STRING,
        "the tenant: a LocalQueue of the namespace, else a ClusterQueue",
        None,
        recurs=True,
    ),
    _of_pod_set(REQUEST, Kind.INT64, "amount per pod; cpu in millicores, memory in bytes", "0"),
    _of_pod_set("pods", Kind.INT32, "identical pods, at least 1", "1"),
    _of_pod_set("min_pods", Kind.INT32, "minimum number of pods that partial admission may give", "pods"),
    Column(
        "gang", Kind.BOOL, "whether progress needs all pods at the same time", "true for more than one pod"
    ),
    Column("priority", Kind.INT32, "larger is more important", "the class's value, else the global default"),
    Column("priority_class", Kind.STRING, "name of a PriorityClass or WorkloadPriorityClass", recurs=True),
    Column("preemption_policy", Kind.STRING, " or ".join(PREEMPTION_POLICIES), "the class's", recurs=True),
    Column("namespace", Kind.STRING, "the Kubernetes namespace", DEFAULT_NAMESPACE, recurs=True),
    Column("user", Kind.STRING, "user who submitted the job", recurs=True),
    _of_pod_set("pod_set", Kind.STRING, "name of this row's pod set", DEFAULT_POD_SET, recurs=True),
    Column(
        "requested_time",
        Kind.DURATION,
        "longest run time that the user stated; nothing ends a job that runs longer",
    ),
    Column("grace_period", Kind.DURATION, "how long a preempted pod keeps its resources", "the replay's"),
    Column("checkpoint_interval", Kind.DURATION, "overrides the replay's loss model", "the replay's"),
    Column(
        STARTUP,
        Kind.DURATION,
        "time that pods need to become ready; the duration starts when they are ready",
        "the replay's start-up time if the column is absent; null means that pods are never ready",
    ),
    _of_pod_set(LIMIT, Kind.INT64, "limit per pod; together with the requests, it gives the QoS class"),
    _of_pod_set("labels", Kind.MAP, "labels of the pods"),
    _of_pod_set("node_selector", Kind.MAP, "labels that a node must have"),
    _of_pod_set("tolerations", Kind.STRING, "JSON list, as in a Pod"),
    _of_pod_set("affinity", Kind.STRING, "JSON object, as in a Pod"),
    _of_pod_set("pod_template", Kind.STRING, "JSON object, a Pod's template"),
    _of_pod_set(
        "topology_required",
        Kind.STRING,
        "topology level, as a node label; one of its domains must hold all pods",
        recurs=True,
    ),
    _of_pod_set(
        "topology_preferred",
        Kind.STRING,
        "topology level; one of its domains should hold all pods",
        recurs=True,
    ),
    _of_pod_set("topology_unconstrained", Kind.BOOL, "whether any domains are acceptable", "false"),
    _of_pod_set(
        "topology_slice",
        Kind.STRING,
        "topology level; one of its domains must hold all pods of a slice",
        recurs=True,
    ),
    _of_pod_set("topology_slice_size", Kind.INT32, "number of pods in a slice"),
    _of_pod_set("topology_group", Kind.STRING, "pod sets of one group are placed together", recurs=True),
    Column(
        "uid", Kind.STRING, "last tie-break of components that compare UIDs", "the row number, zero-padded"
    ),
    Column("recorded_start", Kind.TIME, "when the job started in reality; policies never use this"),
    Column("recorded_end", Kind.TIME, "when the job ended in reality; policies never use this"),
)

REQUIRED = tuple(column.name for column in COLUMNS if column.default is None)
"""The columns that every trace has."""

_BY_NAME: Mapping[str, Column] = {column.name: column for column in COLUMNS}


def column_of(name: str) -> Column | None:
    """Returns the schema's column for a column of a file, or None if the column is outside the schema."""
    for prefix in (REQUEST, LIMIT):
        if name.startswith(prefix):
            return _BY_NAME[prefix]
    return _BY_NAME.get(name)


def resources_of(names: Iterable[str], prefix: str = REQUEST) -> list[str]:
    """Returns the resources of the request columns among `names`, in sorted order.

    `prefix` is the prefix of these columns. It can also be that of the limit columns.
    """
    return sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))


def is_map(dtype: pl.DataType) -> bool:
    """Returns True for maps from text to text, which older releases of polars represent as lists."""
    if type(dtype).__name__ == "Map":
        return repr(dtype) == "Map(String, String)"
    entry = dtype.inner if isinstance(dtype, pl.List) else None
    return isinstance(entry, pl.Struct) and entry.to_schema() == {"key": pl.String, "value": pl.String}


def has_names(dtype: pl.DataType) -> bool:
    """Returns True if the values of a column can be names, which are texts, numbers or booleans."""
    return dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean) or dtype.is_numeric()


def entries(value: Any) -> tuple[tuple[str, str | None], ...]:
    """Returns a map's value as sorted pairs, in whichever form polars represents the map."""
    if not value:
        return ()
    pairs = value.items() if isinstance(value, Mapping) else ((item["key"], item["value"]) for item in value)
    return tuple(sorted(pairs))


def ordered(names: Iterable[str]) -> list[str]:
    """Returns column names in the order of the schema. Resources are sorted, and other columns come last."""
    names = list(names)
    order = {column.name: place for place, column in enumerate(COLUMNS)}

    def place(name: str) -> tuple[int, str]:
        column = column_of(name)
        return (order[column.name], name) if column else (len(order), "")

    return sorted(names, key=place)
