"""Checksums of a run's tables and of `run.json`, which show whether the files are unchanged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SUM = "sha256"
"""The key of a checksum, in `tables` for each table and in `provenance` for the whole document."""


def seal_tables(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Returns the size and the checksum of each table."""
    return {name: _of_file(folder / f"{name}.parquet") for name in names}


def seal_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the content of `run.json`, extended by a checksum over the whole content.

    The checksum is under `provenance`, together with all other values that can differ between repetitions of
    a run.
    """
    return {**info, "provenance": {**info["provenance"], SUM: _of_info(info)}}


def is_sealed(info: Mapping[str, Any]) -> bool:
    """Returns True if a run has checksums. Runs with schema 2 have none."""
    return bool(info["schema"] != "2")


def info_is_whole(info: Mapping[str, Any]) -> bool:
    """Returns True if the content of `run.json` is unchanged since it was written."""
    return bool(info["provenance"].get(SUM) == _of_info(info))


def table_fault(folder: Path, name: str, sealed: Mapping[str, Any]) -> str | None:
    """Returns a text that says how the bytes of a table have changed, or None if they have not.

    Raises:
        OSError: the file can't be read.
    """
    found = _of_file(folder / f"{name}.parquet")
    if found == sealed:
        return None
    if found["bytes"] != sealed.get("bytes"):
        return f"it has {found['bytes']:,} bytes, not {sealed.get('bytes')}"
    return "its content has changed since it was written"


def _of_info(info: Mapping[str, Any]) -> str:
    """Returns the checksum of a document without its checksum field.

    The result is the same before the document is written and after it is read.
    """
    provenance = {key: value for key, value in info["provenance"].items() if key != SUM}
    text = json.dumps({**info, "provenance": provenance}, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _of_file(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, SUM: hashlib.file_digest(file, "sha256").hexdigest()}
