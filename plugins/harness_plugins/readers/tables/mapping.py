"""A mapping in YAML: which files and rows of a table count, and what each column is made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness.errors import Fault, OptionError, TraceError
from harness.models.manifests import read_documents
from harness.options import did_you_mean
from harness.readers.schema import REQUEST, Kind, column_of
from harness.readers.source import contents
from harness_plugins.readers.tables.syntax import (
    Condition,
    LanguageError,
    Source,
    columns_of,
    parse_condition,
    parse_source,
    parse_term,
)
from harness_plugins.readers.tables.times import Clock

TOTAL = "total."
"""Begins the columns that say what a whole job has of a resource."""

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
HINT = "docs/tables.md has the language; harness trace convert --map pm100 uses a mapping that comes with it"
_DELIMITERS = {"comma": ",", "tab": "\t"}


@dataclass(frozen=True)
class TableMapping:
    """What a table says.

    Attributes:
        name: of the mapping, for messages.
        columns: column of a trace, or `total.RESOURCE` -> what it is made of.
        files: a pattern of the files in a folder; "" for all of them.
        records: the list inside each element of a JSON document; "" where its elements are the rows.
        zone: of times that say none.
        where: the text of each condition that rows must meet, and the condition.
        latest: of rows with one job_id that with the greatest value of this column counts; "" where all do.
        delimiter: between the cells of a text.
        header: whether the first line of a text names its columns.
        about: what is to be known of the data: its source and licence, conventions, the machine.
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

    @property
    def wanted(self) -> list[str]:
        """The columns of the table that it names."""
        return list(dict.fromkeys(self._wanted()))

    def _wanted(self) -> Iterator[str]:
        for source in self.columns.values():
            if source.constant is None:
                yield from columns_of(source.term)
                yield from columns_of(source.by)
        for _, condition in self.where:
            yield from columns_of(condition)
        if self.latest:
            yield from columns_of(parse_term(self.latest))


def named_mappings() -> list[str]:
    """The mappings that come with harness."""
    found = files("harness_plugins.readers.tables").joinpath("mappings").iterdir()
    return sorted(each.name.removesuffix(".yaml") for each in found if each.name.endswith(".yaml"))


def read_mapping(text: str) -> TableMapping:
    """A mapping by its name, or of a file.

    Raises:
        OptionError: there is neither.
        TraceError: it is not of the language; names each key, and the place in it.
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
    faults: list[Fault] = []
    documents, _ = read_documents(text, faults)
    content: Any = documents[0].content if len(documents) == 1 else None
    if not faults and not isinstance(content, dict):
        faults.append(Fault("", "must be one YAML mapping with the key columns"))
    if faults:
        raise TraceError(name, faults, hint=HINT)
    columns = content.get("columns", content if not set(content) & {*_KEYS, *_ABOUT} else None)
    if columns is content:  # the short form: columns alone
        content = {}
    faults += _misplaced(content)
    if not isinstance(columns, dict) or not columns:
        faults.append(Fault("columns", "must say for each column of a trace what it is made of"))
        raise TraceError(name, faults, hint=HINT)
    sources = dict(_sources(columns, faults))
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
        bool(content.get("header", True)),
        {key: content[key] for key in _ABOUT if key in content},
    )


def _misplaced(content: Mapping[str, Any]) -> Iterator[Fault]:
    """Keys that a mapping does not have, and such of another type."""
    for key, value in content.items():
        if key not in (*_KEYS, *_ABOUT):
            hint = did_you_mean(str(key), _KEYS)
            yield Fault(str(key), f"is no key of a mapping; {hint or f'there are {chr(44).join(_KEYS)}'}")
        elif key in _TEXTS and not isinstance(value, str):
            yield Fault(key, f"must be a text, and is {value!r:.60}")
        elif key == "header" and not isinstance(value, bool):
            yield Fault(key, "must be true or false")
        elif key == "conventions" and not _are_texts(value):
            yield Fault(key, "must be a list of texts")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _sources(columns: Mapping[Any, Any], faults: list[Fault]) -> Iterator[tuple[str, Source]]:
    for key, value in columns.items():
        name = str(key)
        resource = name.removeprefix(TOTAL)
        target = column_of(REQUEST + resource if name.startswith(TOTAL) and resource else name)
        if target is None:
            hint = did_you_mean(name, ["pods", "user", "requested_time", *_REQUIRED])
            faults.append(Fault(name, f"is no column of a trace{'; ' + hint if hint else ''}"))
        elif target.kind is Kind.MAP:
            faults.append(Fault(name, "holds a map, which the language cannot make"))
        elif name.startswith(TOTAL) and REQUEST + resource in columns:
            faults.append(Fault(name, f"is there beside {REQUEST}{resource}: write one of them"))
        elif not isinstance(value, (str, int)) or isinstance(value, bool):
            faults.append(Fault(name, f"must be a text, and is {value!r:.60}"))
        else:
            found = _parsed(name, str(value), parse_source, faults)
            if found is not None:
                yield name, found
    if "pod_set" in columns and any(str(name).startswith(TOTAL) for name in columns):
        faults.append(Fault("pod_set", "cannot stand beside totals, which make the pod sets of a job"))
    missing = [name for name in _REQUIRED if name not in columns]
    if missing:
        faults.append(Fault("columns", f"lacks {', '.join(missing)}, which every trace has"))


def _conditions(where: Any, faults: list[Fault]) -> Iterator[tuple[str, Condition]]:
    """The parts of a condition that `and` joins, each with its text: rows are counted by them."""
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
