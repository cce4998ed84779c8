"""Reads a mapping in YAML, which says how a table becomes a trace.

A mapping selects files and rows of the table, and states the source of each column of the trace.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness.base.errors import Fault, OptionError, TraceError
from harness.base.options import did_you_mean
from harness.models.manifests import read_documents
from harness.readers.schema import REQUEST, column_of
from harness.readers.source import contents
from harness_plugins.readers.tables.machine import machine_faults
from harness_plugins.readers.tables.syntax import (
    Column,
    Condition,
    LanguageError,
    Source,
    columns_of,
    numbered,
    parse_condition,
    parse_source,
    parse_term,
)
from harness_plugins.readers.tables.times import Clock

TOTAL = "total."
"""The prefix of columns with the total amount of a resource for a whole job."""

_KEYS = ("files", "records", "zone", "where", "latest", "delimiter", "header", "columns")
_ABOUT = ("about", "source", "licence", "left_out", "conventions", "machine")
_TEXTS = (
    "files",
    "records",
    "zone",
    "where",
    "latest",
    "delimiter",
    "about",
    "source",
    "licence",
    "left_out",
)
_REQUIRED = ("job_id", "submit_time", "duration", "queue")
HINT = "docs/tables.md describes the language; harness trace convert --map pm100 uses a built-in mapping"
_CONVERT = "harness trace convert FILE OUT.parquet --reader csv"
NO_HEADER = (
    f"if the first line is a record, map columns by number: {_CONVERT} --set header=no "
    '--set map="job_id=1, queue=2, …"'
)
ONE_COLUMN = "the table has a single column; if a character separates its cells, name it: --set delimiter=';'"
_MARKS = {";": "';'", "\t": "tab", "|": "'|'", ",": "comma"}
"""Characters that often separate columns, as values of the option `delimiter`."""
_DELIMITERS = {"comma": ",", "tab": "\t"}


def another_delimiter(names: Sequence[str]) -> str | None:
    """Returns a hint if the name of a table's only column contains a character that may separate columns."""
    other = next((mark for mark in _MARKS if len(names) == 1 and mark in names[0]), None)
    if other is None:
        return None
    return f"if {other!r} separates the columns: {_CONVERT} --set delimiter={_MARKS[other]}"


@dataclass(frozen=True)
class TableMapping:
    """The content of a mapping.

    Attributes:
        columns: the source of each column of a trace, or of `total.RESOURCE`.
        files: a pattern for the files in a folder. "" means all files.
        records: the name of the list with the rows, which is inside each element of a JSON document. "" means
            that the elements themselves are the rows.
        zone: the zone of times that have no zone.
        where: the conditions that rows must meet, each with its text.
        latest: a column. If several rows have the same job_id, only the row with the greatest value in this
            column is used. "" means that all rows are used.
        delimiter: the character between the cells of delimited text.
        header: whether the first line of delimited text names the columns.
        about: facts about the data, such as the source, the licence, the conventions and the machine.
        short: whether the mapping has only columns, as in `--reader csv`. See `tables.short`.
    """

    name: str
    columns: Mapping[str, Source]
    files: str = ""
    records: str = ""
    zone: str = "UTC"
    where: tuple[tuple[str, Condition], ...] = ()
    latest: str = ""
    delimiter: str = ""
    header: bool = True
    about: Mapping[str, Any] = field(default_factory=dict)
    short: bool = False

    @property
    def wanted(self) -> list[str]:
        """The columns of the table that the mapping names."""
        return list(dict.fromkeys(self._wanted()))

    def pick(self, has: Sequence[str]) -> list[str]:
        """Returns the columns of a file to read.

        In the short form, these include columns that have the same name as a column of a trace.
        """
        there = set(has)
        return [name for name in dict.fromkeys([*self.wanted, *self._own(has)]) if name in there]

    def of_table(self, has: Sequence[str], root: Path) -> TableMapping:
        """Returns the mapping for a table with these columns.

        In the short form, the result also maps columns that have the same name as a column of a trace.

        Raises:
            TraceError: in the short form, neither the mapping nor the table has a column that every trace
                needs.
        """
        if not self.short:
            return self
        columns = {**self.columns, **{name: Source(name, Column(name)) for name in self._own(has)}}
        missing = [name for name in _REQUIRED if name not in columns]
        if missing:
            what = f"is not mapped, and the table has no such column; it has {', '.join(has):.200}"
            raise TraceError(str(root), [Fault(name, what) for name in missing], hint=self.remedy(has))
        return replace(self, columns=columns)

    def remedy(self, has: Sequence[str]) -> str:
        """Returns a hint for a table that lacks columns, which is often a wrong delimiter or no header."""
        numbers = self.header and any(map(is_number, has))
        return another_delimiter(has) or (NO_HEADER if numbers else HINT)

    def _own(self, has: Sequence[str]) -> list[str]:
        return [name for name in has if name not in self.columns and column_of(name)] if self.short else []

    def _wanted(self) -> Iterator[str]:
        for source in self.columns.values():
            if source.constant is None:
                yield from columns_of(source.term)
                yield from columns_of(source.by)
        for _, condition in self.where:
            yield from columns_of(condition)
        if self.latest:
            yield from columns_of(parse_term(self.latest))


def is_number(name: str) -> bool:
    """Returns True if the name of a column is a number, so that it is probably a cell of the first row."""
    return name.replace(".", "", 1).isdecimal()


def named_mappings() -> list[str]:
    """Lists the built-in mappings."""
    found = files("harness_plugins.readers.tables").joinpath("mappings").iterdir()
    return sorted(each.name.removesuffix(".yaml") for each in found if each.name.endswith(".yaml"))


def read_mapping(text: str) -> TableMapping:
    """Reads a mapping by its name or from a file.

    Raises:
        OptionError: neither exists.
        TraceError: the mapping does not follow the language. The message names each key, and the place in it.
    """
    known = named_mappings()
    path = Path(text)
    if text in known:
        content = (
            files("harness_plugins.readers.tables").joinpath("mappings", f"{text}.yaml").read_text("utf-8")
        )
        return _read(text, content)
    if not path.is_file():
        suffix = path.suffix in (".yaml", ".yml")
        what = "no file of this name" if suffix else "no mapping of this name, and no file"
        hint = did_you_mean(text, known) if not suffix else "name a file, or one of: " + ", ".join(known)
        raise OptionError(f"mapping {text}: there is {what}", hint=hint)
    return _read(str(path), contents(path).decode("utf-8", "replace"))


def _read(name: str, text: str) -> TableMapping:
    content = yaml_mapping(name, text)
    if not set(content) & {*_KEYS, *_ABOUT}:  # only columns
        content = {"columns": content}
    return mapping_of(name, content)


def yaml_mapping(name: str, text: str) -> dict[str, Any]:
    """Returns the only YAML mapping in a text.

    Raises:
        TraceError: the text is not one YAML mapping.
    """
    faults: list[Fault] = []
    documents, _ = read_documents(text, faults)
    content: Any = documents[0].content if len(documents) == 1 else None
    if not faults and not isinstance(content, dict):
        faults.append(Fault("", "must be one YAML mapping with the key 'columns'"))
    if faults:
        raise TraceError(name, faults, hint=HINT)
    return dict(content)


def mapping_of(name: str, content: Mapping[str, Any], *, short: bool = False) -> TableMapping:
    """Builds a mapping from keys and values that were read from YAML.

    Raises:
        TraceError: the mapping does not follow the language. The message names each key, and the place in it.
    """
    faults = list(_misplaced(content))
    columns = content.get("columns")
    if not isinstance(columns, dict) or not (columns or short):
        faults.append(Fault("columns", "must give the source of each column of a trace"))
        raise TraceError(name, faults, hint=HINT)
    header = bool(content.get("header", True))
    sources = dict(_sources(columns, faults, short=short))
    if short and not header:
        sources = {target: numbered(source) for target, source in sources.items()}
    where = list(_conditions(content.get("where", ""), faults))
    if content.get("latest"):
        _parsed("latest", content["latest"], parse_term, faults)
    zone = str(content.get("zone", "UTC"))
    try:
        Clock(zone)
    except ValueError as error:
        faults.append(Fault("zone", str(error)))
    delimiter = _DELIMITERS.get(str(content.get("delimiter", "")), str(content.get("delimiter", "")))
    if delimiter and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
        faults.append(Fault("delimiter", f"{delimiter!r} is neither comma, tab, nor one character"))
    if faults:
        raise TraceError(name, faults, hint=HINT)
    return TableMapping(
        name,
        sources,
        str(content.get("files", "")),
        str(content.get("records", "")),
        zone,
        tuple(where),
        str(content.get("latest", "")),
        delimiter,
        header,
        {key: content[key] for key in _ABOUT if key in content},
        short,
    )


def _misplaced(content: Mapping[str, Any]) -> Iterator[Fault]:
    for key, value in content.items():
        if key not in (*_KEYS, *_ABOUT):
            hint = did_you_mean(str(key), _KEYS) or f"the keys are {', '.join(_KEYS)}"
            yield Fault(str(key), f"is not a key of a mapping; {hint}")
        elif key in _TEXTS and not isinstance(value, str):
            yield Fault(key, f"must be text, but is {value!r:.60}")
        elif key == "header" and not isinstance(value, bool):
            yield Fault(key, "must be true or false")
        elif key == "machine":
            yield from machine_faults(value)
        elif key == "conventions" and not _are_texts(value):
            yield Fault(key, "must be a list of text values")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _sources(columns: Mapping[Any, Any], faults: list[Fault], *, short: bool) -> Iterator[tuple[str, Source]]:
    for key, value in columns.items():
        name = str(key)
        resource = name.removeprefix(TOTAL)
        target = column_of(REQUEST + resource if name.startswith(TOTAL) and resource else name)
        if target is None and not short:
            hint = did_you_mean(name, ["pods", "user", "requested_time", *_REQUIRED])
            faults.append(Fault(name, f"is not a column of a trace{'; ' + hint if hint else ''}"))
        elif name.startswith(TOTAL) and REQUEST + resource in columns:
            faults.append(Fault(name, f"cannot be combined with {REQUEST}{resource}: write one of them"))
        elif not isinstance(value, (str, int)) or isinstance(value, bool):
            faults.append(Fault(name, f"must be text, but is {value!r:.60}"))
        else:
            found = _parsed(name, str(value), parse_source, faults)
            if found is not None:
                yield name, found
    if "pod_set" in columns and any(str(name).startswith(TOTAL) for name in columns):
        faults.append(Fault("pod_set", "cannot be combined with totals, which make the pod sets of a job"))
    missing = [name for name in _REQUIRED if name not in columns]
    if missing and not short:
        faults.append(Fault("columns", f"lacks {', '.join(missing)}, which every trace needs"))


def _conditions(where: Any, faults: list[Fault]) -> Iterator[tuple[str, Condition]]:
    """Yields the parts of a condition that `and` joins. Dropped rows are counted for each part."""
    if not isinstance(where, str) or not where.strip():
        return
    for part in _conjuncts(where.strip()):
        found = _parsed("where", part, parse_condition, faults)
        if found is not None:
            yield part, found


def _conjuncts(text: str) -> list[str]:
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [text]
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [ast.get_source_segment(text, each) or text for each in node.values]
    return [text]


def _parsed(key: str, text: Any, parse: Any, faults: list[Fault]) -> Any:
    try:
        return parse(str(text))
    except LanguageError as error:
        faults.append(Fault(key, str(error)))
        return None
