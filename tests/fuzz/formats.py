"""Files of every format that a reader takes, damaged byte by byte, cell by cell, or value by value."""

from __future__ import annotations

import gzip
import json
from random import Random
from typing import NamedTuple

from reader_samples import SAMPLES, Sample

from fuzz.junk import HOSTILE, NUMBERS, PIECES, QUANTITIES, TIMES, damaged, mutated
from harness.base.options import Option
from harness.plugins import load

_JSON = ("philly-log", "kubernetes", "prometheus", "slurm json")
_LINES = ("google collections", "google instances")
_BINARY = ("parquet", "opendc", "swf in gzip")


class Read(NamedTuple):
    """Files in a foreign format.

    Attributes:
        files: name -> contents.
        main: which of them is read.
        reader: whose format it is.
        settings: options of the reader, as `--set` has them.
    """

    files: dict[str, bytes]
    main: str
    reader: str
    settings: tuple[str, ...]


def read(random: Random) -> Read:
    """A sample of one format with something wrong in a file, in the options, or in both."""
    name = random.choice(sorted(SAMPLES))
    sample = SAMPLES[name]
    files = dict(sample.files)
    settings = tuple(f"{key}={value}" for key, value in sample.options.items())
    if random.randrange(5):
        files[sample.damaged] = _changed(name, sample, random)
    if random.randrange(4) == 0:
        settings += _settings(sample.reader, random)
    return Read(files, sample.main, sample.reader, settings)


def _changed(name: str, sample: Sample, random: Random) -> bytes:
    data = sample.contents
    if name in _BINARY:
        return damaged(data, random, text=False)
    how = random.randrange(10)
    if how == 0:
        return gzip.compress(damaged(data, random), mtime=0)
    if how == 1:
        return damaged(gzip.compress(data, mtime=0), random, text=False)
    if how < 4:
        return damaged(data, random)
    if name in _JSON:
        return json.dumps(mutated(json.loads(data), random)).encode(errors="replace")
    lines = data.split(b"\n")
    if name in _LINES:
        place = random.randrange(len(lines) - 1)
        lines[place] = json.dumps(mutated(json.loads(lines[place]), random)).encode(errors="replace")
        return b"\n".join(lines)
    return b"\n".join(_cells(lines, random))


def _cells(lines: list[bytes], random: Random) -> list[bytes]:
    """Delimited text with other cells, or with a line that is there again."""
    place = random.randrange(len(lines))
    delimiter = next((each for each in (b"\t", b"|", b",", b" ") if each in lines[place]), b",")
    for _ in range(random.choice((1, 1, 2))):
        cells = lines[place].split(delimiter)
        column = random.randrange(len(cells))
        how = random.randrange(8)
        if how == 0:
            cells.insert(column, b"7")
        elif how == 1:
            del cells[column]
        elif how == 2:
            return [*lines[:place], lines[place], *lines[place:]]
        else:
            words = (*map(str, NUMBERS), *QUANTITIES, *TIMES, *HOSTILE)
            word = random.choice((random.choice(words).encode(errors="replace"), random.choice(PIECES)))
            cells[column] = word
        lines[place] = delimiter.join(cells)
    return lines


_OPTIONS = {spec.name: spec.options for spec in load(only=["readers"]).readers}


def _settings(reader: str, random: Random) -> tuple[str, ...]:
    """One option of a reader with a value that may be none of its own."""
    if not _OPTIONS[reader]:
        return (f"{random.choice(HOSTILE)}={random.choice(HOSTILE)}",)
    option = random.choice(_OPTIONS[reader])
    return (f"{option.name}={value_for(option, random)}".replace("\0", "0"),)


def value_for(option: Option, random: Random) -> str:
    """A text for an option: one of its choices, or a number, quantity, time or name that may not fit."""
    pool = random.choice((option.choices or QUANTITIES, tuple(map(str, NUMBERS)), QUANTITIES, TIMES, HOSTILE))
    return str(random.choice((*pool, str(option.default))))
