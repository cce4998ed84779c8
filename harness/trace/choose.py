"""Chooses the reader of a file by name, or else by the file's suffix, or else by its first bytes."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from warnings import warn

from harness.base.errors import Fault, TraceError, told, why
from harness.base.files.packed import PackedError, refuse_zip, unpacked_head
from harness.plugins import Plugins
from harness.plugins.registries import ReaderSpec

_SNIFFED = 4096
_READ = 1 << 16


def choose_reader(path: Path, plugins: Plugins, name: str | None = None) -> ReaderSpec:
    """Returns the reader for a file.

    Raises:
        TraceError: the file is missing, unreadable or empty, or no reader or several readers accept it.
        PluginError: no reader has this name.
    """
    if path.is_dir():
        return _of_folder(path, plugins, name)
    require_readable(path)
    if name is not None:
        return plugins.reader(name)
    named = [
        (len(suffix), spec)
        for spec in plugins.readers
        for suffix in spec.suffixes
        if path.name.lower().endswith(suffix.lower())
    ]
    longest = max((length for length, _ in named), default=0)
    candidates = [spec for length, spec in named if length == longest]
    if len(candidates) != 1:
        head = _head(path)
        asked = candidates or list(plugins.readers)
        candidates = [spec for spec in asked if _takes(spec, spec.sniff, path, head)]
    if len(candidates) == 1:
        return candidates[0]
    known = ", ".join(plugins.readers.names())
    if not candidates:
        if len(head) < _SNIFFED and not head.removeprefix(BOM_UTF8).strip():
            raise TraceError(str(path), [Fault("", "has no lines")])
        try:
            refuse_zip(head)
        except PackedError as error:
            raise TraceError(str(path), [Fault("", str(error))], hint=error.hint) from error
        hint = advice(path, plugins) or f"specify its format with --reader (one of: {known})"
        raise TraceError(str(path), [Fault("", "no reader accepts this format")], hint=hint)
    raise TraceError(
        str(path),
        [Fault("", f"more than one reader accepts this file: {', '.join(spec.name for spec in candidates)}")],
        hint="choose with --reader",
    )


def _of_folder(path: Path, plugins: Plugins, name: str | None) -> ReaderSpec:
    if name is not None and (named := plugins.reader(name)).folder is not None:
        return named
    for spec in plugins.readers:
        if _takes(spec, spec.folder, path):
            return spec
    if (path / "run.json").is_file():
        made = f"harness trace from-run {path} OUT.parquet writes the trace of the run"
        raise TraceError(str(path), [Fault("", "is the folder of a run, not a trace file")], hint=made)
    hint = advice(path, plugins)
    raise TraceError(str(path), [Fault("", "is a directory, not a trace file")], hint=hint)


def advice(path: Path, plugins: Plugins) -> str | None:
    """Returns advice from readers about a file or folder that no reader accepts, or None."""
    for spec in plugins.readers:
        if spec.advise is not None and (said := _asked(spec, spec.advise, path)) is not None:
            return str(said)
    return None


def _takes(spec: ReaderSpec, ask: Callable[..., bool] | None, path: Path, *head: bytes) -> bool:
    return ask is not None and bool(_asked(spec, ask, path, *head))


def _asked(spec: ReaderSpec, ask: Callable[..., object], path: Path, *head: bytes) -> object:
    """Returns a reader's answer about a file or folder, or None if the reader fails."""
    try:
        return ask(path, *head)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        how = f"failed when harness asked whether it reads {path}: {told(error)}"
        warn(f"reader {spec.name!r} of {spec.owner!r} {how}; harness ignores this reader", stacklevel=2)
        return None


def require_readable(path: Path) -> None:
    """Check that a file or folder can be read.

    Raises:
        TraceError: the file or folder does not exist, cannot be read, or is an empty file.
    """
    if path.is_dir():
        return
    try:
        size = path.stat().st_size
        with path.open("rb"):
            pass
    except FileNotFoundError:
        raise TraceError(str(path), [Fault("", "there is no such file")]) from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise TraceError(str(path), [Fault("", f"cannot be read: {why(error)}")]) from error
    if size == 0 and path.is_file():
        raise TraceError(str(path), [Fault("", "is empty")])


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return unpacked_head(file.read(_READ), _SNIFFED)
