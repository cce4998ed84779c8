"""Writes files and folders under hidden names, and moves them into place when they are complete."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EACCES, EEXIST, EINVAL, EISDIR, ENOSYS, ENOTDIR, ENOTEMPTY, ENOTSUP, EPERM
from functools import cache
from pathlib import Path
from typing import Any

from harness.base.files.hold import Hold, clear, held, remove

_TRIES = 10
_TAKEN = (EEXIST, EISDIR, ENOTDIR, ENOTEMPTY)  # the error numbers that renaming gives if the new name exists


_HERE = -100  # AT_FDCWD: names are relative to the working directory
_EXCHANGE = 2  # RENAME_EXCHANGE
_CANNOT = (EINVAL, ENOSYS, ENOTSUP, EPERM)
"""The errors of kernels or file systems that don't support the call, which some sandboxes report as EPERM."""


@contextmanager
def whole_folder(place: Path) -> Iterator[Path]:
    """Provide a new hidden folder, and move it into place when the block ends without an error.

    After an error, the folder is removed. Readers see either the old content or the complete new folder, even
    if the process is killed or the machine stops. The function creates missing parent folders. It first
    removes files of dead processes beside the folder.

    Raises:
        OSError: the folder cannot be written. The old content is still in place.
    """
    made: list[Path] = []
    try:
        with ExitStack() as stack:
            hold = _held_in_new(place, made, stack)
            hold.path.mkdir()
            yield hold.path
            _put_into_place(hold, place)
        for each in (place.parent, *(folder.parent for folder in made)):
            _sync(each)
    except BaseException:
        for folder in reversed(made):
            with suppress(OSError):  # no longer empty: another process writes there
                folder.rmdir()
        raise


@contextmanager
def whole_file(place: Path) -> Iterator[Path]:
    """Provide a path for a file, and move the file into place when the block ends without an error.

    After an error, the file is removed. If the destination is a link, the function replaces the link's
    target. It writes directly to a terminal or a pipe.

    Raises:
        OSError: the file cannot be written. The old content is still in place.
    """
    mode = _mode(place)
    if mode is not None and not stat.S_ISREG(mode):
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(place))
        yield place
        return
    if mode is not None and not os.access(place, os.W_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), str(place))
    place = place.resolve()
    clear(place.parent)
    with held(place) as hold:
        yield hold.path
        if not hold.path.exists():
            return
        if mode is not None:
            shutil.copymode(place, hold.path)
        _sync(hold.path)
        hold.path.replace(place)
        _sync(place.parent)


def _held_in_new(place: Path, made: list[Path], stack: ExitStack) -> Hold:
    """Hold a hidden name beside a path, and create the folder of the path if necessary.

    If another process fails at this moment and removes a folder that it had created, the folder is created
    again.
    """
    for tries_left in reversed(range(_TRIES)):
        _make(place.parent, made)
        clear(place.parent)
        try:
            return stack.enter_context(held(place))
        except FileNotFoundError:
            if not tries_left:
                raise
    raise AssertionError


def _put_into_place(hold: Hold, place: Path) -> None:
    """Give a folder its final name, and move the old content to the hidden name or temporarily aside."""
    for each in (*hold.path.iterdir(), hold.path):
        _sync(each)
    while True:
        try:
            if exchange(hold.path, place):
                return
            remove(hold.old)
            place.rename(hold.old)  # absent for a moment; another process restores it if we die now
        except FileNotFoundError:
            pass
        try:
            hold.path.rename(place)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return  # otherwise, another process has just created the same name


def _mode(place: Path) -> int | None:
    try:
        return place.stat().st_mode
    except FileNotFoundError:
        return None


def _make(folder: Path, made: list[Path]) -> None:
    """Create a folder and its parents, and record which ones did not exist.

    A failing process may remove a parent at this moment. The system gives the same error for existing places
    that accept no new folder, such as `/proc`.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            folder.mkdir()
        except FileNotFoundError:
            if not tries_left or folder == folder.parent:
                raise
            _make(folder.parent, made)
        except FileExistsError:
            if os.path.lexists(folder) and not folder.is_dir():
                raise
            return
        else:
            made.append(folder)
            return


def _sync(path: Path) -> None:
    """Write a file, or the names in a folder, to the disk immediately."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems keep names safe on their own, and don't support this call for folders.
        if error.errno != EINVAL or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def exchange(one: Path, other: Path) -> bool:
    """Swap two names on a file system atomically, so that both names always exist.

    Returns:
        True if the names were swapped, or False if the system has no such call.

    Raises:
        FileNotFoundError: one of the names does not exist.
        OSError: the names can't be exchanged.
    """
    renameat2 = _renameat2()
    if renameat2 is None:
        return False
    if renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))


@cache
def _renameat2() -> Any:
    """Returns `renameat2` of the C library, or None if the library lacks it, for example on macOS."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
