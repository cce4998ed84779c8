"""Reads the short form of a mapping, which the option `map` accepts and which can only map columns.

    map="job_id=JobID, submit_time=Submit:iso, duration=End - Start:iso, queue=Account, request.cpu=CPUs"

The language and the files are the same as for all mappings. Four rules make mappings shorter. A column of the
table that has the name of a trace's column needs no mapping. In a column of times, text without a unit is a
number of seconds. If the table has no header line, an integer outside of functions is a column. A column that
a trace does not have is kept as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import Reading
from harness.base.errors import OptionError
from harness.readers.source import contents
from harness_plugins.readers.tables.files import find_files
from harness_plugins.readers.tables.mapping import mapping_of, yaml_mapping
from harness_plugins.readers.tables.reading import table_to_trace

_GRAMMAR = "such as map=\"job_id=JobID, duration=End - Start:iso, queue='default', request.memory=Mem:GiB\""
_OPEN, _CLOSE = "([", ")]"


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads a table. Rows without a submission time or a duration are left out.

    Raises:
        TraceError: the mapping or the file cannot be read, or cells are invalid for their kind.
        OptionError: a part of the mapping lacks `=`.
    """
    file = options["mapping"]
    columns = yaml_mapping(file, contents(Path(file)).decode("utf-8", "replace")) if file else {}
    for part in filter(None, map(str.strip, _parts(options["map"]))):
        name, equals, source = (piece.strip() for piece in part.partition("="))
        if not (name and equals and source):
            raise OptionError(f"option map: {part!r} is not COLUMN=SOURCE", hint=_GRAMMAR)
        columns[name] = source
    content = {"columns": columns, "delimiter": options["delimiter"], "header": options["header"] == "yes"}
    mapping = mapping_of(file if file and not options["map"] else "option map", content, short=True)
    return table_to_trace(path, find_files(path, ""), mapping)


def _parts(text: str) -> Iterator[str]:
    """Yields the parts between commas. Commas in quotes and parentheses do not separate parts."""
    part, quote, depth = "", "", 0
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        depth += 0 if quote else (letter in _OPEN) - (letter in _CLOSE)
        if letter == "," and not quote and depth <= 0:
            yield part
            part = ""
        else:
            part += letter
    yield part
