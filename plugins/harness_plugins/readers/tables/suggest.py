"""Drafts a mapping from the column names of a table. The draft is printed, but not applied."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path

import polars as pl

from harness.base.errors import Fault, TraceError
from harness.readers.schema import REQUEST, Kind, column_of
from harness.readers.source import contents
from harness.readers.time_forms import read_form
from harness_plugins.readers.tables.documents import is_json, read_documents
from harness_plugins.readers.tables.files import find_files
from harness_plugins.readers.tables.mapping import HINT, TOTAL
from harness_plugins.readers.tables.sample import Sample, sample_of

_TIME = r"(_?(time|timestamp|at|date|ts)|_(s|sec|seconds|ms|us|ns|unix|epoch|utc))*"
_SIZE = r"(_?(alloc|allocated|used|count|num|req|request|requested))*"
_OF = r"((num|n|alloc|req|request|requested)_?)?"
_UNITS = {
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "ms": "ms", "min": "m", "mins": "m",
    "minute": "m", "minutes": "m", "hour": "h", "hours": "h", "bytes": "B",
    **{f"{letter.lower()}{i}b": f"{letter}{i}B" for letter in "KMGT" for i in ("", "i")},
}  # fmt: skip
"""The units of the language, for the last word of a column's name."""
_UNIT = f"(_({'|'.join(_UNITS)}))?"
_LOOKS = {
    "job_id": (
        r"(primary_|id_|task_|allocation_|cobalt_)?(job|task|jid|allocation|pod|vm)(_?(id|name))?(_?raw)?|id_job|"
        r"id|jid|uuid"
    ),
    "submit_time": rf"(job_)?(time_)?(submi(t|ssion|tted)|adt|creat(ed?|ion)|arriv(al|ed)|queued){_TIME}",
    "started": rf"(time_)?(start(ed)?|begin|began|sdt){_TIME}",
    "ended": rf"(time_)?(end(ed)?|finish(ed)?|complet(ed|ion)|edt){_TIME}",
    "duration": rf"((job_)?run_?time|elapsed(_?(raw|time))?|duration|wall_?(clock|time)_used|ran){_UNIT}",
    "queue": (
        r"(partition|queue|account|project|qos|pool|group|team|tenant|platform|organization|vc)"
        r"(_?(name|id))?"
    ),
    "user": r"(hashed_|id_)?(user|usr|owner)(_?(name|id|hash))?",
    "pods": rf"(num_?|n_?)?(nodes?|hosts?|pods?){_SIZE}|nnum[ra]|number_of_nodes|node_?ct",
    "cpu": rf"{_OF}(cores?|(v_?)?cpus?|processors?|procs?|cnum[ra]t?){_SIZE}",
    "memory": rf"{_OF}(host_?)?(mem|memory|ram){_SIZE}(_?([kmgt]i?b|bytes))*{_SIZE}",
    "gpu": rf"{_OF}gpus?{_SIZE}",
    "requested_time": (
        rf"((time|wall_?(clock|time)?)_?(limit|req|requested)|limit|elpl|requested_time|walltime){_UNIT}"
    ),
}
"""The pattern of typical column names for each wanted column, which ignores case."""

_RESOURCES = {"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"}
_KEYS = {"pods": "node", "cpu": "cpu", "memory": "mem", "gpu": "gres/gpu"}
_OF_TRES = {wanted: rf"(^|,){key}(:[^,=]+)?=[0-9]" for wanted, key in _KEYS.items()}
_READ_AS = {"cpu": "cores", "memory": "size"}
_NUMBERS = ("pods", *_RESOURCES)
_QUEUES = ("partition", "queue")
_NO_LIMIT = 2**31 - 1
"""A limit of this size or more means that there is no limit, as in 32-bit programs."""

_SECONDS = ((10**8, ""), (10**11, "unix"), (10**14, "unix-ms"), (10**17, "unix-us"), (10**30, "unix-ns"))
"""The upper bounds of numbers that are times, each with the unit of such numbers."""

_MISSING = ("NULL", "null", "None", "NaN", "nan", "NaT", "NA", "N/A", "<NA>", "\\N", "Unknown", "-")
"""Words that tables write if there is no number and no time."""

_NAMES = ("job_id", "queue", "user")
_FORMS = tuple(
    f"{day} {clock}"
    for day in ("%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%a %b %d")
    for clock in ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%H:%M:%S %Y")
    if ("%Y" in day) != ("%Y" in clock)
)
"""Forms of times that are not ISO 8601. The first one that fits all values is used."""

_OPEN = ("PENDING", "RUNNING")
_SIZES = ("request.memory", "request.ephemeral-storage")
_OFFSET = r"(Z|UTC|GMT|:[0-9.]+\s*[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
_COMMA = r"[0-9],[0-9]"
_READS = {
    "thousands": r"^\s*([1-9][0-9]{0,2}(,[0-9]{3})+|[0-9]+)(\.[0-9]+)?\s*$",
    "comma": r"^\s*[0-9]+(,[0-9]+)?\s*$",
}
"""The functions that read numbers with commas, with the form of such numbers. The first that fits is used."""
_WHICH = "is the comma between thousands? for a decimal comma, use comma()"


@dataclass(frozen=True, slots=True)
class _Line:
    """A column of the mapping, its source, and a remark on what to check."""

    name: str
    source: str
    remark: str = ""

    def __str__(self) -> str:
        remark = "; ".join(filter(None, (self.remark, _WHICH if "thousands(" in self.source else "")))
        return f"  {self.name}: {_quoted(self.source)}{remark and f'  # {remark}'}"


def suggest(path: Path) -> str:
    """Returns a draft of a mapping for a table as YAML, with remarks on what to check.

    Raises:
        TraceError: the file is not a table, or is faulty JSON.
    """
    sample = next((found for each in find_files(path, "") if (found := sample_of(each))), None)
    if sample is None or not sample.frame.columns:
        if not path.is_dir() and is_json(data := contents(path)):
            read_documents(path, data, list)  # names the place where the JSON is faulty
        raise TraceError(str(path), [Fault("", "is not a table of Parquet, JSON or text")], hint=HINT)
    return "\n".join(_lines(path, sample)) + "\n"


def _lines(path: Path, sample: Sample) -> Iterator[str]:
    found = _found(sample.frame)
    yield f"# A draft of a mapping for {path.name}, based on the names of its columns. Check each line."
    yield "# docs/tables.md has the language. Then: harness trace convert TABLE OUT.parquet --map THIS.yaml"
    if path.is_dir():
        yield 'files: "**/*"  # which files of the folder are the table'
    if sample.records:
        yield f"records: {sample.records}"
    if sample.delimiter:
        yield f"delimiter: {json.dumps(sample.delimiter)}"
    if not sample.header:
        yield "header: false  # the first line seems to be a row; col(1) is the first column"
    yield from _where(sample.frame, found)
    yield "columns:"
    lines = [*_columns(sample.frame, found)]
    own = [*_as_in_a_trace(sample.frame, {*found.values(), *(line.name for line in lines)})]
    yield from map(str, [*lines, *own])
    used = {*found.values(), *(line.name for line in own)}
    left = [name for name in sample.frame.columns if name not in used]
    if left:
        yield f"# unused columns: {', '.join(left)}"


def _found(frame: pl.DataFrame) -> dict[str, str]:
    """Returns the matching column for each wanted column, and prefers granted to requested amounts."""
    found: dict[str, str] = {}
    for wanted, pattern in _LOOKS.items():
        if any(f"{prefix}{_RESOURCES.get(wanted)}" in frame.columns for prefix in (REQUEST, TOTAL)):
            continue
        several = [
            name
            for name in frame.columns
            if name not in found.values()
            and any(re.fullmatch(pattern, each) for each in (_plain(name), _last(name)))
            and _holds(frame, name)
            and not (wanted == "pods" and _is_text(frame[name]))
        ]
        if several:
            found[wanted] = min(
                several,
                key=lambda name: (not re.fullmatch(pattern, _plain(name)), _rank(frame, wanted, name)),
            )
    lists = [
        name
        for name in frame.columns
        if frame[name].dtype == pl.String and frame[name].str.contains(_OF_TRES["cpu"]).any()
    ]
    if lists and not (_RESOURCES.keys() & found.keys() or _has_amounts(frame)):
        found["tres"] = min(lists, key=lambda name: "alloc" not in _plain(name))
    return found


def _rank(frame: pl.DataFrame, wanted: str, name: str) -> tuple[int, bool, bool]:
    """Returns the rank of a matching column. The lowest is best: numbers, then text, then lists."""
    plain, dtype = _plain(name), frame[name].dtype
    kind = (0 if dtype.is_numeric() else 1 if dtype == pl.String else 2) if wanted in _NUMBERS else 0
    return kind, "req" in plain or "name" in plain, wanted == "queue" and not plain.startswith(_QUEUES)


def _plain(name: str) -> str:
    """Returns a name in lower case, with underscores between its words."""
    return re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower().strip("_")


def _last(name: str) -> str:
    """Returns the name within its object: `cpus` of `resources.cpus`."""
    return _plain(name.rpartition(".")[2])


def _holds(frame: pl.DataFrame, name: str) -> bool:
    return frame[name].null_count() < frame.height or not frame.height


def _columns(frame: pl.DataFrame, found: dict[str, str]) -> Iterator[_Line]:
    has = {
        wanted: _called(name) if wanted in _NAMES else _term(frame, name) for wanted, name in found.items()
    }
    of_tres = dict(_tres(frame, found["tres"])) if "tres" in found else {}
    if "pods" not in has and "pods" in of_tres:
        has["pods"] = of_tres["pods"]
    if "job_id" in has:
        yield _Line("job_id", has["job_id"])
    else:
        yield _Line("job_id", "row()", "no column looks like a name, so this is the row number")
    for wanted, name in (
        ("submit_time", "submit_time"),
        ("started", "recorded_start"),
        ("ended", "recorded_end"),
    ):
        if wanted in found:
            yield _Line(name, _instant(frame[found[wanted]], has[wanted]), _zone(frame[found[wanted]]))
        elif wanted == "submit_time":
            if "started" in found:
                source = _instant(frame[found["started"]], has["started"])
                yield _Line(name, source, "no column looks like a submission, so this is the start")
            else:
                yield _Line(name, "SUBMITTED", "no column looks like a time: enter its name")
    yield from _durations(frame, found, has)
    yield (
        _Line("queue", has["queue"])
        if "queue" in has
        else _Line("queue", "'all'", "no column looks like a queue")
    )
    if "user" in has:
        yield _Line("user", has["user"])
    if "pods" in has:
        yield _Line("pods", has["pods"])
    yield from (_Line(f"total.{_RESOURCES[each]}", of_tres[each]) for each in _RESOURCES if each in of_tres)
    if not of_tres:
        yield from _amounts(frame, found, has)


def _tres(frame: pl.DataFrame, name: str) -> Iterator[tuple[str, str]]:
    """Yields the amounts in a column of Slurm's TRES, such as `cpu=4,mem=8G,node=1`."""
    for wanted, form in _OF_TRES.items():
        if frame[name].str.contains(form).any():
            amount = f"tres({_called(name)}, '{_KEYS[wanted]}')"
            yield wanted, f"unless({amount}, 0)" if wanted == "pods" else amount


def _durations(frame: pl.DataFrame, found: dict[str, str], has: dict[str, str]) -> Iterator[_Line]:
    if "duration" in found:
        yield _Line("duration", *_span(frame[found["duration"]], has["duration"], _unit(found["duration"])))
    elif "started" in found and "ended" in found:
        unit = _instant(frame[found["ended"]], "").removeprefix(" : ")
        difference = f"{has['ended']} - {has['started']}"
        yield _Line("duration", f"{difference} : {unit}" if unit else difference)
    else:
        yield _Line("duration", "'1h'", "no column looks like a run time, so all jobs have the same one")
    if "requested_time" in found:
        limit = found["requested_time"]
        yield _Line("requested_time", *_span(frame[limit], has["requested_time"], _unit(limit)))


def _amounts(frame: pl.DataFrame, found: dict[str, str], has: dict[str, str]) -> Iterator[_Line]:
    """Yields the lines for amounts, assumed to be for the whole job if the table has a number of nodes."""
    kind = "total" if "pods" in has else "request"
    whose = "for the whole job? for one node, use request.{}" if "pods" in has else ""
    for wanted, name in _RESOURCES.items():
        if wanted in has:
            column = frame[found[wanted]]
            source = f"{_READ_AS[wanted]}({has[wanted]})" if _is_amount(wanted, column) else has[wanted]
            units = ""
            if wanted == "memory" and source == has[wanted]:
                unit = _unit(found[wanted])
                source = f"{source} : {unit}" if unit else source
                units = (
                    f"in {unit}? powers of 1024 are MiB and GiB" if unit else "in bytes? for MiB, add ': MiB'"
                )
            remark = "; ".join(filter(None, (whose.format(name), units)))
            yield _Line(f"{kind}.{name}", source, remark)
    if not _RESOURCES.keys() & has.keys() and not _has_amounts(frame):
        yield _Line("request.cpu", "'1000'", "no column looks like an amount, so each pod requests a core")


def _has_amounts(frame: pl.DataFrame) -> bool:
    return any(name.startswith((REQUEST, TOTAL)) for name in frame.columns)


def _is_amount(wanted: str, column: pl.Series) -> bool:
    """Returns True for text that a function reads: sizes of memory, or cores such as `500m`."""
    if wanted == "cpu" and column.dtype == pl.String:
        return _is_text(column) and bool(_present(column).str.contains(r"^\s*[0-9.]+m?\s*$").all())
    return wanted in _READ_AS and _is_text(column)


def _as_in_a_trace(frame: pl.DataFrame, used: set[str]) -> Iterator[_Line]:
    """Yields a line for each further column that has the name of a column of a trace."""
    for name in frame.columns:
        of_pod = name.replace(TOTAL, REQUEST, 1) if name.startswith(TOTAL) else name
        known = column_of(of_pod)
        if known is None or known.kind is Kind.MAP or name in used or name == "uid":  # often a user's number
            continue
        term = _term(frame, name)
        if of_pod in _SIZES and _is_text(frame[name]):
            yield _Line(name, f"size({term})")
        elif name.endswith(".cpu") and _are_whole(frame[name]):
            yield _Line(name, f"{term} : millicores", "in millicores? for cores, leave out ': millicores'")
        else:
            yield _Line(name, term)


def _where(frame: pl.DataFrame, found: dict[str, str]) -> Iterator[str]:
    """Yields a condition that leaves out jobs that wait, run, or started in 1970."""
    parts = [*_unfinished(frame), *_never_started(frame, found)]
    if parts:
        yield f"where: {_quoted(' and '.join(parts))}"


def _never_started(frame: pl.DataFrame, found: dict[str, str]) -> Iterator[str]:
    """Yields a condition for each column of times in which 0 or -1 stands for a time that is not known."""
    for wanted in ("started", "ended"):
        column = _numbers(frame[found[wanted]]) if wanted in found else None
        if column is not None and (column <= 0).any() and float(column.max() or 0) > 10**8:  # type: ignore[arg-type]
            yield f"{_term(frame, found[wanted])} > 0"


def _unfinished(frame: pl.DataFrame) -> Iterator[str]:
    for name in frame.columns:
        if re.fullmatch(r"(job_)?(state|status)(_current)?", _plain(name)) and frame[name].dtype == pl.String:
            still = [each for each in _OPEN if frame[name].is_in([each]).any()]
            if still:
                values = "".join(f"'{each}', " for each in still)
                yield f"{_term(frame, name)} not in ({values.strip()})"


def _called(name: str) -> str:
    return name if name.isidentifier() and not iskeyword(name) else f"col({name!r})"


def _term(frame: pl.DataFrame, name: str) -> str:
    called = _called(name)
    if frame[name].dtype == pl.Struct:
        return f"count({called})"
    words = [word for word in _MISSING if frame[name].dtype == pl.String and (frame[name] == word).any()]
    if words:
        called = f"unless({called}, {', '.join(map(repr, words))})"
    reads = _reads_commas(frame[name])
    return f"{reads}({called})" if reads else called


def _instant(column: pl.Series, term: str) -> str:
    """Returns a time with its unit, which depends on the largest value."""
    numbers = _numbers(column)
    if numbers is None:
        form = _form(column)
        return f"{term} : {form}" if form else term
    most = float(numbers.abs().max() or 0)  # type: ignore[arg-type]
    unit = next(unit for bound, unit in _SECONDS if most < bound)
    unit = unit or ("s" if column.dtype == pl.String else "")
    return f"{term} : {unit}" if unit else term


def _zone(column: pl.Series) -> str:
    known = column.dtype == pl.Datetime("us", "UTC") or _numbers(column) is not None
    if column.dtype == pl.String:
        known = known or bool(_present(column).str.contains(_OFFSET).all())
        if _form(column).startswith("%m/"):
            return "month first? else use %d/%m/%Y; in which time zone? set the key 'zone'"
    return "" if known else "in which time zone? set the key 'zone'"


def _form(column: pl.Series) -> str:
    """Returns the form of times in text, or "" for ISO 8601 and for text of no known form."""
    given = _present(column).drop_nulls() if column.dtype == pl.String else column.clear()
    if given.is_empty() or given.str.contains(r"^\s*[0-9]{4}-").all():
        return ""
    frame = given.str.strip_chars().to_frame("text")
    read = {form: frame.select(read_form(form).value(pl.col("text"))).to_series() for form in _FORMS}
    return next((form for form, times in read.items() if not times.null_count()), "")


def _unit(name: str) -> str:
    return _UNITS.get(_plain(name).rpartition("_")[2], "")


def _span(column: pl.Series, term: str, unit: str) -> tuple[str, str]:
    if isinstance(column.dtype, pl.Duration):
        return term, ""
    if _numbers(column) is None and column.dtype == pl.String:
        return f"span({term})", ""
    numbers = _numbers(column)
    if numbers is not None and float(numbers.max() or 0) >= _NO_LIMIT:  # type: ignore[arg-type]
        term = f"below({term}, {_NO_LIMIT})"
    return (f"{term} : {unit}", "") if unit else (term, "in seconds? for minutes, add ': m'")


def _numbers(column: pl.Series) -> pl.Series | None:
    """Returns a column as numbers if it has numbers or text with numbers. For other columns, returns None."""
    if column.dtype.is_numeric():
        return column.cast(pl.Float64)
    if column.dtype != pl.String:
        return None
    column = _present(column)
    reads = _reads_commas(column)
    text = column.str.replace_all(",", "." if reads == "comma" else "", literal=True) if reads else column
    read = text.str.strip_chars().cast(pl.Float64, strict=False)
    return read if read.null_count() == column.null_count() else None


def _reads_commas(column: pl.Series) -> str:
    """Returns the function that reads text with numbers, if some of them have a comma; "" for other text."""
    if column.dtype != pl.String or not column.str.contains(_COMMA).any():
        return ""
    given = _present(column)
    return next((reads for reads, form in _READS.items() if given.str.contains(form).all()), "")


def _present(column: pl.Series) -> pl.Series:
    """Returns a column of text without the words that mean that there is no value."""
    return column.filter(~column.is_in(_MISSING))


def _are_whole(column: pl.Series) -> bool:
    numbers = _numbers(column)
    return numbers is None or bool((numbers % 1 == 0).all())


def _is_text(column: pl.Series) -> bool:
    return column.dtype == pl.String and _numbers(column) is None


def _quoted(source: str) -> str:
    return source if re.fullmatch(r"[A-Za-z_][\w() +-]*", source) else json.dumps(source, ensure_ascii=False)
