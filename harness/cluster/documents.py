"""Turns the text of a manifest file into its documents, as Kubernetes turns YAML into JSON.

Text is cut at its `---` lines first, as kubectl does, so that one broken document does not hide the faults of
the others. YAML is built from parser events on a stack of our own: depth and the growth by aliases are
bounded, and no nesting can exhaust the interpreter's stack. Kubernetes' reading of plain scalars differs from
PyYAML's, so `harness.cluster.scalars` resolves them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from harness.cluster.scalars import BOOLEAN_FIELDS, NotFiniteError, Word, resolved
from harness.errors import Fault, SpecError
from harness.json_text import DEEPEST, leading_json

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TOO_DEEP = f"nested more than {DEEPEST} levels deep"
_TOO_DEEP_FOR_LIBYAML = "exceeded maximum nesting depth"
"""What libyaml says at 1,000 levels since PyYAML 6.0.4; of flow lists, before it has told of any level."""

_LARGEST_EXPANSION = 1_000_000
_LONGEST_WORD = 40

_MARK = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
_MARK_TEXT = "---"
_NO_CONTENT = re.compile(r"(?:---|\.\.\.)?[ \t\r]*(?:[#%].*)?")
_NO_SPACE = re.compile(r"[^ \t\r\n]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "map", "seq")}


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: `where` names it in messages, `content` is its JSON value."""

    where: str
    content: Any


def read_specification(path: Path, what: str, *, hint: str | None = None) -> tuple[Any, bytes]:
    """The content of a file that holds one document, and its bytes.

    Args:
        path: the file.
        what: what messages call such a document, such as "a specification".
        hint: where it is described.

    Raises:
        SpecError: it cannot be read, or holds something else.
    """

    def faulty(*faults: Fault) -> SpecError:
        return SpecError(str(path), list(faults), hint=hint)

    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise faulty(Fault("", f"is not text in UTF-8: byte {error.start} is no character")) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise faulty(Fault("", f"cannot be read: {reason}")) from error
    faults: list[Fault] = []
    documents, complete = read_documents(text, faults)
    if complete and len(documents) != 1:
        faults.append(Fault("", f"holds {len(documents)} documents; {what} is one"))
    if faults:
        raise faulty(*faults)
    return documents[0].content, data


def read_documents(text: str, faults: list[Fault]) -> tuple[list[Document], bool]:
    """The documents of a manifest file, without empty ones, and whether they are all there.

    Args:
        text: YAML of one or more documents, or JSON objects one after the other.
        faults: where faults are added; a document that cannot be read to its end is left out.
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
            what = f"{word!r} follows a JSON object: write a line --- between documents"
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
    """The JSON objects that text begins with, one after the other as `kubectl get -o json` prints each.

    Args:
        chunk: text without `---` but at its very beginning.
        line: the number of its first line.
        number: how many documents stand before it.
        faults: where faults are added.

    Returns:
        The documents, and what of the text is no JSON, for YAML to read or to say what is wrong, with the
        number of the line where it begins.
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
    """A mapping of pairs; names that are given twice are added to `twice`."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        count = Counter(name for name, _ in pairs)
        twice.append(", ".join(repr(name) for name in sorted(count) if count[name] > 1))
    return mapping


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """The text between `---` lines with the number of its first line; chunks without content are left out."""
    starts = [mark.start() for mark in _MARK.finditer(text)]
    bounds = [0, *starts, len(text)]
    line = 1
    for start, end in pairwise(bounds):
        chunk = text[start:end]
        if not _is_empty(chunk):
            yield line, chunk
        line += chunk.count("\n")


def _is_empty(text: str) -> bool:
    """Whether text has no content: only comments, directives, and marks of where documents begin and end."""
    return all(_NO_CONTENT.fullmatch(row) for row in text.split("\n"))


class _FatalError(Exception):
    """A fault after which the rest of a document means nothing."""


@dataclass(slots=True)
class _Frame:
    """A mapping or sequence that is being built; `size` counts its values with all aliases expanded."""

    container: dict[str, Any] | list[Any]
    anchor: str | None
    size: int = 1
    key: str | None = None
    merging: bool = False
    merged: set[str] = field(default_factory=set)


class _Builder:
    """Builds the value of one document from parser events.

    Attributes:
        broken: whether it could not be read to its end.
        expanded: how many values aliases have made in this document and those before it.
    """

    def __init__(self, where: str, first_line: int, faults: list[Fault], expanded: int) -> None:
        self.where = where
        self.faults = faults
        self.broken = False
        self._first_line = first_line
        self._line = first_line
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open_anchors: set[str] = set()
        self.expanded = expanded
        self._root: Any = None

    def build(self, chunk: str) -> Any:
        """The document's value; what is wrong with it is in `faults` afterwards."""
        try:
            events: Iterator[Any] = yaml.parse(chunk, Loader=_Loader)
            for event in events:
                self._line = self._first_line + event.start_mark.line
                self._take(event)
        except _FatalError as error:
            self._break(str(error))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            if mark is not None:
                self._line = self._first_line + mark.line
            problem = error.problem or error.context
            self._break(_TOO_DEEP if problem == _TOO_DEEP_FOR_LIBYAML else f"not valid YAML: {problem}")
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            self._break(f"not valid YAML: {' '.join(str(error).split())}")
        return self._root

    def _fault(self, what: str) -> None:
        self.faults.append(Fault(f"{self.where}, line {self._line}", what))

    def _break(self, what: str) -> None:
        self.broken = True
        self._fault(what)

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._open(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close()
        elif isinstance(event, yaml.DocumentStartEvent) and self._root is not None:
            raise _FatalError("a second document begins without a line '---'")

    def _scalar(self, event: Any) -> None:
        awaiting_key = self._awaits_key()
        plain = event.implicit[0] and event.tag is None
        if awaiting_key and plain and event.value == "<<":
            self._stack[-1].merging = True
            return
        tag = None if event.tag is None or event.tag == "!" else _TAGS.get(event.tag, event.tag)
        value = self._resolved(event.value) if plain or tag not in (None, "str") else event.value
        if tag is not None and isinstance(value, Word):
            value = value.truth
        if tag is not None and tag != _json_type(value) and not (tag == "float" and type(value) is int):
            self._fault(f"{event.value!r} has the tag {event.tag}, which is not read here")
        if not event.value.isascii() and _SURROGATE.search(event.value):
            self._fault("holds half of a surrogate pair, which is no character")
            value = ""
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, 1)

    def _resolved(self, text: str) -> Any:
        """A plain scalar's JSON value."""
        try:
            return resolved(text)
        except NotFiniteError:
            self._fault(f"{text} is not a number that a manifest can hold")
            return 0

    def _alias(self, anchor: str | None) -> None:
        if anchor in self._open_anchors:
            raise _FatalError(f"*{anchor} stands inside of what it refers to")
        if anchor is None or anchor not in self._anchors:
            raise _FatalError(f"*{anchor} refers to nothing above")
        value, size = self._anchors[anchor]
        self.expanded += size
        if self.expanded > _LARGEST_EXPANSION:
            raise _FatalError(f"aliases make more than {_LARGEST_EXPANSION:,} values of the file")
        self._put(value, size)

    def _open(self, event: Any) -> None:
        kind = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
        if self._awaits_key():
            raise _FatalError("a mapping or list cannot be a key")
        if event.tag not in (None, "!") and _TAGS.get(event.tag) != kind:
            self._fault(f"the tag {event.tag} is not read here")
        if len(self._stack) >= DEEPEST:
            raise _FatalError(_TOO_DEEP)
        if event.anchor:
            self._open_anchors.add(event.anchor)
        self._stack.append(_Frame({} if kind == "map" else [], event.anchor))

    def _close(self) -> None:
        frame = self._stack.pop()
        if frame.anchor:
            self._open_anchors.discard(frame.anchor)
            self._anchors[frame.anchor] = (frame.container, frame.size)
        self._put(frame.container, frame.size)

    def _awaits_key(self) -> bool:
        frame = self._stack[-1] if self._stack else None
        return (
            frame is not None
            and isinstance(frame.container, dict)
            and frame.key is None
            and not frame.merging
        )

    def _put(self, value: Any, size: int) -> None:
        """Hand a finished value to what it stands in."""
        if not self._stack:
            self._root = value
            return
        frame = self._stack[-1]
        if isinstance(frame.container, list):
            frame.size += size
            frame.container.append(value)
        elif frame.merging:
            frame.size += size
            frame.merging = False
            self._merge(frame, value)
        elif frame.key is None:
            frame.key = self._key(value)
            if frame.key in frame.container and frame.key not in frame.merged:
                self._fault(f"{frame.key!r} is given twice in one mapping")
        else:
            frame.size += size
            settles = isinstance(value, Word) and frame.key in BOOLEAN_FIELDS
            frame.container[frame.key] = value.truth if settles else value
            frame.merged.discard(frame.key)
            frame.key = None

    def _key(self, value: Any) -> str:
        if isinstance(value, (dict, list)) or value is None:
            raise _FatalError("a key must be text")
        if isinstance(value, Word):
            return json.dumps(value.truth)
        return value if isinstance(value, str) else json.dumps(value)

    def _merge(self, frame: _Frame, value: Any) -> None:
        """Lay mappings over what stands above, as Kubernetes does; of a list the first one wins."""
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, Mapping) for mapping in mappings):
            self._fault("'<<' must be followed by a mapping or a list of mappings")
            return
        assert isinstance(frame.container, dict)
        for mapping in reversed(mappings):
            frame.container.update(mapping)
            frame.merged.update(mapping)


def _json_type(value: Any) -> str:
    names = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}
    return names[type(value)]
