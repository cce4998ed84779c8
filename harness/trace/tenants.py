"""Sets the tenants of jobs, for traces whose queues are not the tenants or that have too many tenants."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, TypeAlias

import polars as pl

from harness.base.errors import ClusterError, OptionError
from harness.base.frozen import Frozen
from harness.base.names import kubernetes_name
from harness.base.options import did_you_mean
from harness.base.text import agreeing, first_of
from harness.base.values import Value, fixed
from harness.cluster.yaml.sources import text_of
from harness.trace.job_rows import has_pod_sets
from harness.trace.schema import has_names
from harness.trace.trace import Trace

_QUEUE, _NAMESPACE, _LOCAL_QUEUE = "queue", "namespace", "local_queue"
_HINT = "write CSV with the header queue,namespace,local_queue and a line for each queue of the trace"


class Place(NamedTuple):
    """The replacement for a queue. Fields that are "" keep the original value."""

    namespace: str
    local_queue: str


def read_queue_map(path: str) -> dict[str, Place]:
    """Returns the replacement of each queue.

    The CSV file has a header that contains `queue`, and `namespace` or `local_queue` or both. An empty cell
    keeps the trace's value.

    Raises:
        OptionError: the file cannot be read, or lines are invalid. The error lists all invalid lines.
    """
    try:
        lines = csv.reader(io.StringIO(text_of(Path(path), _HINT), newline=""))
        head, *rows = [[cell.strip() for cell in row] for row in lines] or [[]]
    except ClusterError as error:
        raise OptionError(f"--tenants map:{error.message}", hint=error.hint) from error
    except csv.Error as error:
        raise OptionError(f"--tenants map:{path}: cannot be read: {error}", hint=_HINT) from error
    unknown = sorted({*head} - {_QUEUE, _NAMESPACE, _LOCAL_QUEUE})
    if unknown or _QUEUE not in head or len(head) < 2 or len({*head}) < len(head):
        raise OptionError(
            f"--tenants map:{path}, line 1: {','.join(head)!r} is not a valid header", hint=_HINT
        )
    found: dict[str, Place] = {}
    wrong = []
    for number, row in enumerate(rows, 2):
        if not any(row):
            continue
        cells = dict(zip(head, row, strict=False))
        place = Place(cells.get(_NAMESPACE, ""), cells.get(_LOCAL_QUEUE, ""))
        name = cells[_QUEUE]
        if len(row) != len(head) or not name or not any(place):
            wrong.append(f"line {number}: {','.join(row)!r} is not a queue with its replacement")
        elif name in found:
            wrong.append(f"line {number}: {name!r} occurs twice")
        else:
            found[name] = place
    if wrong:
        raise OptionError("\n".join(f"--tenants map:{path}, {each}" for each in wrong), hint=_HINT)
    return found


OTHER = "other"
"""The queue for jobs whose queues `top` does not keep."""

UNKNOWN = "unknown"
"""The queue for jobs that have no value in the column."""

_FORM = "write column:NAME, top:N, hash:N, names or map:FILE, or several of them, such as column:user,top:20"
_NUMBER = re.compile("0*[1-9][0-9]{0,8}", re.ASCII)
_NAMED = 5

_Step: TypeAlias = Callable[[pl.DataFrame, str], pl.DataFrame]


@fixed()
class Tenants(Value):
    """Steps that set new queues, one after another.

    The step `column:NAME` uses another column as the queue. The step `top:N` keeps the N queues with the most
    jobs, and puts the other jobs into the queue `other`. The step `hash:N` distributes queues over N queues
    by a hash of their names. The step `names` converts names to names that Kubernetes accepts. The step
    `map:FILE` replaces queues by the LocalQueues and namespaces in a file.

    Attributes:
        steps: the kind and the argument of each step.
        maps: the contents of the files that were already read. Other files are read when rows change.
    """

    steps: tuple[tuple[str, str], ...]
    maps: Mapping[str, Mapping[str, Place]] = field(default_factory=Frozen)

    @classmethod
    def parse(cls, text: str) -> Tenants:
        """Parse `KIND:ARGUMENT`, or several of them, separated by commas.

        Raises:
            OptionError: a step is unknown, or a number is invalid.
        """
        steps = []
        for part in text.split(","):
            kind, _, argument = part.strip().partition(":")
            if kind not in _KINDS or (kind == "names") == bool(argument):
                raise OptionError(f"--tenants {text!r}: {part!r} is not understood", hint=_FORM)
            if kind in ("top", "hash") and not _NUMBER.fullmatch(argument):
                raise OptionError(
                    f"--tenants {text!r}: {argument!r} is not a number from 1 to 999,999,999", hint=_FORM
                )
            steps.append((kind, argument))
        return cls(tuple(steps))

    def __str__(self) -> str:
        return ",".join(f"{kind}:{argument}" if argument else kind for kind, argument in self.steps)

    def read(self, folder: Path) -> Tenants:
        """Returns the steps with the contents of their files, so that they can be applied without the files.

        The files' paths are relative to `folder`.

        Raises:
            OptionError: a file cannot be read, or is faulty.
        """
        steps = tuple(
            (kind, str(folder / argument) if kind == "map" else argument) for kind, argument in self.steps
        )
        maps = {argument: Frozen(read_queue_map(argument)) for kind, argument in steps if kind == "map"}
        return Tenants(steps, Frozen(maps))

    def changed(self, trace: Trace) -> tuple[pl.DataFrame, str]:
        """Returns the rows with their new queues.

        Raises:
            OptionError: a column or file does not exist, or two queues would become one.
        """
        frame = trace.frame
        before = frame["queue"].n_unique()
        for kind, argument in self.steps:
            if kind == "map":
                there = self.maps.get(argument)
                frame = _mapped(frame, argument, read_queue_map(argument) if there is None else there)
            else:
                frame = _STEPS[kind](frame, argument)
        return frame, f"{agreeing(before, 'queue', 'become')} {frame['queue'].n_unique():,}"


def _column(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    if name not in frame.columns:
        raise OptionError(
            f"--tenants column:{name}: the trace has no such column", hint=did_you_mean(name, frame.columns)
        )
    if not has_names(frame[name].dtype):
        raise OptionError(f"--tenants column:{name}: {frame[name].dtype} cannot be the name of a tenant")
    text = frame[name].cast(pl.String)
    return _with(frame, text.set(text == "", None).fill_null(UNKNOWN))


def _top(frame: pl.DataFrame, count: str) -> pl.DataFrame:
    jobs = pl.col("job_id").n_unique() if has_pod_sets(frame) else pl.len()
    sizes = frame.group_by("queue").agg(jobs.alias("jobs")).sort("jobs", "queue", descending=[True, False])
    kept = sizes["queue"].head(int(count))
    if len(kept) < sizes.height and OTHER in kept:
        raise OptionError(f"--tenants top:{count}: one of the largest queues is already named {OTHER!r}")
    queue = pl.when(pl.col("queue").is_in(kept.implode())).then("queue").otherwise(pl.lit(OTHER))
    return _with(frame, frame.select(queue).to_series())


def _hash(frame: pl.DataFrame, count: str) -> pl.DataFrame:
    parts, width = int(count), len(str(int(count) - 1))

    def part(name: str) -> str:
        number = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") % parts
        return f"hash-{number:0{width}}"

    return _with(frame, _renamed(frame["queue"], part))


def _names(frame: pl.DataFrame, _: str) -> pl.DataFrame:
    made = {name: kubernetes_name(name) for name in frame["queue"].unique().sort()}
    owners: dict[str, str] = {}
    for name, new in made.items():
        if owners.setdefault(new, name) != name:
            raise OptionError(f"--tenants names: {owners[new]!r} and {name!r} would both be named {new!r}")
    return _with(frame, _renamed(frame["queue"], made.__getitem__))


def _mapped(frame: pl.DataFrame, path: str, places: Mapping[str, Place]) -> pl.DataFrame:
    queues = set(frame["queue"].unique().to_list())
    if not queues & places.keys():
        known = first_of(sorted(queues), _NAMED)
        raise OptionError(f"--tenants map:{path} names no queue of the trace", hint=f"there is: {known}")
    spaces = {name: place.namespace for name, place in places.items() if place.namespace}
    called = {name: place.local_queue for name, place in places.items() if place.local_queue}
    queue = frame["queue"].cast(pl.String)
    stated = frame["namespace"] if "namespace" in frame.columns else pl.repeat(None, len(queue), eager=True)
    mapped = queue.replace_strict(list(spaces), list(spaces.values()), default=None, return_dtype=pl.String)
    namespace = pl.select(pl.coalesce(mapped, stated.cast(pl.String))).to_series().alias("namespace")
    renamed = queue.replace(list(called), list(called.values()))
    return _with(frame.with_columns(namespace) if spaces else frame, renamed)


def _with(frame: pl.DataFrame, queue: pl.Series) -> pl.DataFrame:
    return frame.with_columns(queue.cast(frame["queue"].dtype).alias("queue"))


def _renamed(queues: pl.Series, rename: Callable[[str], str]) -> pl.Series:
    names = queues.unique().sort().to_list()
    return queues.replace_strict(names, [rename(name) for name in names], return_dtype=pl.String)


_STEPS: dict[str, _Step] = {"column": _column, "top": _top, "hash": _hash, "names": _names}
_KINDS = (*_STEPS, "map")
