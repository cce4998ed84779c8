"""Writes files and folders aside and puts them into their place when they are whole."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EACCES, EEXIST, EINVAL, EISDIR, ENOTDIR, ENOTEMPTY
from pathlib import Path

from harness.base.files.exchange import exchange
from harness.base.files.hold import Hold, clear, held, remove

_TRIES = 10
_TAKEN = (EEXIST, EISDIR, ENOTDIR, ENOTEMPTY)
"""What renaming to a name says that something else stands for."""


@contextmanager
def whole_folder(place: Path) -> Iterator[Path]:
    """A new hidden folder, which takes its place when the block ends well; else nothing of it is left.

    Readers see what was there before or the whole new folder, also if the process is killed or the machine
    stops. Folders above are made. What processes that died left beside it is removed first.

    Raises:
        OSError: the folder cannot be written; what was in its place is still there.
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
            with suppress(OSError):  # no longer empty: others write there
                folder.rmdir()
        raise


@contextmanager
def whole_file(place: Path) -> Iterator[Path]:
    """A path to write a file to, which takes its place when the block ends well; else nothing of it is left.

    A link stays one: what it leads to is replaced. What is no file (a terminal, a pipe) is written directly.

    Raises:
        OSError: the file cannot be written; what was in its place is still there.
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
    """A hidden name beside a place, in a folder that is made where there is none.

    Another process may fail just now, and remove the folder that it made: then it is made once more.
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
    """Give a folder its name; what has it now gets the hidden one, or is moved aside for a moment."""
    for each in (*hold.path.iterdir(), hold.path):
        _sync(each)
    while True:
        try:
            if exchange(hold.path, place):
                return
            remove(hold.old)
            place.rename(hold.old)  # absent for a moment; put back if that moment is our last
        except FileNotFoundError:
            pass
        try:
            hold.path.rename(place)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return  # else another process was quicker with the same name


def _mode(place: Path) -> int | None:
    """The type and permissions of what is in a place; None if nothing is."""
    try:
        return place.stat().st_mode
    except FileNotFoundError:
        return None


def _make(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it, and say which were not there.

    One above may be removed again just now, by another process that fails. There are also places that are
    there and take no folder of any name (`/proc`); the system says the same of them.
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
    """Have the system write a file, or the names in a folder, to the disk now.

    Raises:
        OSError: it could not.
    """
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems keep names safe by themselves and have no such call for folders.
        if error.errno != EINVAL or not path.is_dir():
            raise
    finally:
        os.close(descriptor)
