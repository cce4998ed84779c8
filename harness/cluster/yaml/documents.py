"""Parses the documents in a manifest file in the same way as Kubernetes, which converts YAML to JSON.

Like kubectl, the module first splits the text at its `---` lines. As a result, it finds the faults of all
documents, even if one document is broken. It limits the nesting depth and the growth through aliases, so that
no file can exhaust the stack or the memory. Kubernetes and PyYAML read plain scalars differently, so
`harness.cluster.yaml.scalars` resolves the scalars.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from harness.base.errors import IN_UTF8, Fault, SpecError, why
from harness.base.json_text import DEEPEST, leading_json
from harness.base.values import Value, fixed
from harness.cluster.yaml.scalars import BOOLEAN_FIELDS, NotFiniteError, Word, resolved
from harness.cluster.yaml.sources import not_utf8

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TOO_DEEP = f"nested more than {DEEPEST} levels deep"
_TOO_DEEP_FOR_LIBYAML = "exceeded maximum nesting depth"
"""The message of libyaml for 1,000 levels since PyYAML 6.0.4. Flow lists lead to it before any event."""

_LARGEST_EXPANSION = 1_000_000
_LONGEST_WORD = 40

_MARK = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
_MARK_TEXT = "---"
_NO_CONTENT = re.compile(r"(?:---|\.\.\.)?[ \t\r]*(?:[#%].*)?")
_NO_SPACE = re.compile(r"[^ \t\r\n]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TYPES = {str: "str", int: "int", float: "float", bool: "bool", type(None): "null"}
_TAGS = {f"tag:yaml.org,2002:{name}": name for name in (*_TYPES.values(), "map", "seq")}


@fixed()
class Document(Value):
    """A document in a file. `where` is its name in messages, and `content` is its JSON value."""

    where: str
    content: Any


def read_specification(path: Path, what: str, *, hint: str | None = None) -> tuple[Any, bytes]:
    """Returns the content of a file with one document, and the bytes of the file.

    `what` is the name that messages use for this kind of document, such as "a specification". `hint` says
    where such documents are described.

    Raises:
        SpecError: the file can't be read, or doesn't contain exactly one document.
    """

    def faulty(*faults: Fault) -> SpecError:
        return SpecError(str(path), list(faults), hint=hint)

    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(str(path), [Fault("", not_utf8(error))], hint=IN_UTF8) from error
    except (OSError, ValueError) as error:
        raise faulty(Fault("", f"cannot be read: {why(error)}")) from error
    faults: list[Fault] = []
    documents, complete = read_documents(text, faults)
    if complete and len(documents) != 1:
        faults.append(Fault("", f"contains {len(documents)} documents, but {what} must be a single document"))
    if faults:
        raise faulty(*faults)
    return documents[0].content, data


def read_documents(text: str, faults: list[Fault]) -> tuple[list[Document], bool]:
    """Returns the nonempty documents in a manifest file, and whether all of them could be read.

    `text` is YAML with one or more documents, or a sequence of JSON objects. Faults are added to `faults`. A
    document that can't be read to its end is dropped.
    """
    documents: list[Document] = []
    complete, expanded, number = True, 0, 0
    for first, chunk in _chunks(text):
        found, line, rest = _leading_objects(chunk, first, number, faults)
        documents += found
        number += len(found)
        if _is_empty(rest):
            continue
        number += 1
        where = f"document {number} (line {line})"
        if found and not rest.startswith("{"):
            word = rest.split(maxsplit=1)[0][:_LONGEST_WORD]
            what = f"{word!r} follows a JSON object; separate documents with a '---' line"
            faults.append(Fault(where, what))
            complete = False
            continue
        builder = _Builder(where, line, faults, expanded)
        content = builder.build(rest)
        expanded = builder.expanded
        complete = complete and not builder.broken
        if content is not None and not builder.broken:
            documents.append(Document(builder.where, content))
    return documents, complete


def _leading_objects(
    chunk: str, line: int, number: int, faults: list[Fault]
) -> tuple[list[Document], int, str]:
    """Returns the JSON objects at the beginning of a text, such as the output of `kubectl get -o json`.

    Also returns the number of the first line after them, and the rest of the text, which is for the YAML
    parser. The text contains `---` at most at its very beginning. `number` counts the documents before it.
    """
    documents: list[Document] = []
    at, counted = len(_MARK_TEXT) if chunk.startswith(_MARK_TEXT) else 0, 0
    begin, begins = 0, line
    while True:
        found = _NO_SPACE.search(chunk, at)
        if documents:
            begin = len(chunk) if found is None else found.start()
            begins += chunk.count("\n", counted, begin)
            counted = begin
        if found is None or found[0] != "{":
            return documents, begins, chunk[begin:]
        where = f"document {number + len(documents) + 1} (line {begins})"
        twice: list[str] = []
        try:
            content, at = leading_json(chunk, found.start(), pairs=partial(_unique, twice))
            if _ESCAPED_SURROGATE.search(chunk, found.start(), at):
                json.dumps(content, ensure_ascii=False).encode()
        except ValueError:
            return documents, begins, chunk[begin:]
        faults += (Fault(where, f"{names} is given twice in one mapping") for names in twice)
        documents.append(Document(where, content))


def _unique(twice: list[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a mapping of pairs, and adds repeated names to `twice`."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        count = Counter(name for name, _ in pairs)
        twice.append(", ".join(repr(name) for name in sorted(count) if count[name] > 1))
    return mapping


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """Yields each nonempty text between `---` lines, and the number of its first line."""
    starts = [mark.start() for mark in _MARK.finditer(text)]
    bounds = [0, *starts, len(text)]
    line = 1
    for start, end in pairwise(bounds):
        chunk = text[start:end]
        if not _is_empty(chunk):
            yield line, chunk
        line += chunk.count("\n")


def _is_empty(text: str) -> bool:
    return all(_NO_CONTENT.fullmatch(row) for row in text.split("\n"))


class _FatalError(Exception):
    """A fault that makes it impossible to read the rest of a document."""


@dataclass(slots=True)
class _Anchored:
    """A value that aliases can refer to.

    `size` counts the values in it after all aliases are expanded. It is 0 until the end of the value is read.
    """

    value: Any
    size: int = 0


class _Builder:
    """Builds the value of one document from the events of PyYAML's loader.

    PyYAML's own composer is not used because it rejects repeated anchors, although YAML allows them.
    `expanded` counts the values that aliases have created in this document and in earlier documents.
    """

    def __init__(self, where: str, first_line: int, faults: list[Fault], expanded: int) -> None:
        self.where = where
        self.faults = faults
        self.broken = False
        self.expanded = expanded
        self._first_line = first_line
        self._line = 0
        self._depth = 0
        self._made = 0
        self._anchors: dict[str, _Anchored] = {}

    def build(self, chunk: str) -> Any:
        try:
            return self._document(_Loader(chunk).get_event)
        except _FatalError as error:
            what = str(error)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._line = self._line if mark is None else mark.line
            problem = error.problem or error.context
            what = _TOO_DEEP if problem == _TOO_DEEP_FOR_LIBYAML else f"not valid YAML: {problem}"
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            what = f"not valid YAML: {' '.join(str(error).split())}"
        self.broken = True
        self._fault(what)
        return None

    def _document(self, read: Callable[[], Any]) -> Any:
        self._read = read
        root = None
        while not isinstance(event := self._next(), yaml.StreamEndEvent):
            if isinstance(event, yaml.NodeEvent):
                root = self._value(event)
            elif isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise _FatalError("a second document begins without a '---' line before it")
        return root

    def _fault(self, what: str) -> None:
        self.faults.append(Fault(f"{self.where}, line {self._first_line + self._line}", what))

    def _next(self) -> Any:
        event = self._read()
        self._line = event.start_mark.line
        return event

    def _value(self, event: Any) -> Any:
        """Returns the value that begins with an event, and reads all events of the value."""
        self._made += 1
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor))
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        kind = "map" if isinstance(value, dict) else "seq"
        if event.tag not in (None, "!") and _TAGS.get(event.tag) != kind:
            self._fault(f"harness does not support the tag {event.tag}")
        if self._depth == DEEPEST:
            raise _FatalError(_TOO_DEEP)
        before, anchored = self._made, _Anchored(value)
        if event.anchor:
            self._anchors[event.anchor] = anchored
        self._depth += 1
        if kind == "map":
            self._fill(value)
        else:
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                value.append(self._value(event))
        self._depth -= 1
        anchored.size = self._made - before + 1
        return value

    def _fill(self, found: dict[str, Any]) -> None:
        merged: set[str] = set()
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and _is_plain(event):
                self._merge(found, merged, self._value(self._next()))
                continue
            key = self._key(event)
            if key in found and key not in merged:
                self._fault(f"{key!r} is given twice in one mapping")
            value = self._value(self._next())
            found[key] = value.truth if isinstance(value, Word) and key in BOOLEAN_FIELDS else value
            merged.discard(key)

    def _key(self, event: Any) -> str:
        value = self._value(event)
        self._made -= 1
        if isinstance(value, (dict, list)) or value is None:
            raise _FatalError("a key must be text" if value is None else "a mapping or list cannot be a key")
        if isinstance(value, Word):
            value = value.truth
        return value if isinstance(value, str) else json.dumps(value)

    def _merge(self, found: dict[str, Any], merged: set[str], value: Any) -> None:
        """Merge the mappings after a `<<` key into `found`, as Kubernetes does.

        If several mappings have the same key, the first one takes precedence.
        """
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, dict) for mapping in mappings):
            self._fault("'<<' must be followed by a mapping or a list of mappings")
            return
        for mapping in reversed(mappings):
            found.update(mapping)
            merged.update(mapping)

    def _scalar(self, event: Any) -> Any:
        tag = None if event.tag in (None, "!") else _TAGS.get(event.tag, event.tag)
        value = event.value
        if _is_plain(event) or tag not in (None, "str"):
            value = self._resolved(event.value)
        if tag is not None:
            value = value.truth if isinstance(value, Word) else value
            if tag != _TYPES[type(value)] and not (tag == "float" and type(value) is int):
                self._fault(f"{event.value!r} has the tag {event.tag}, which harness does not support")
        if not event.value.isascii() and _SURROGATE.search(event.value):
            self._fault("contains half of a surrogate pair, which is not a character")
            value = ""
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, 1)
        return value

    def _resolved(self, text: str) -> Any:
        try:
            return resolved(text)
        except NotFiniteError:
            self._fault(f"{text} is not a number that a manifest can hold")
            return 0

    def _alias(self, anchor: str) -> Any:
        anchored = self._anchors.get(anchor)
        if anchored is None:
            raise _FatalError(f"*{anchor} refers to an anchor that nothing above defines")
        if not anchored.size:
            raise _FatalError(f"*{anchor} is inside the value that it refers to")
        self._made += anchored.size - 1
        self.expanded += anchored.size
        if self.expanded > _LARGEST_EXPANSION:
            raise _FatalError(f"its aliases expand to more than {_LARGEST_EXPANSION:,} values")
        return anchored.value


def _is_plain(event: Any) -> bool:
    return event.tag is None and bool(event.implicit[0])
