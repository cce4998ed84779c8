"""Manages hidden names that belong to one process, and cleans up after the process has died.

A process writes a file or folder under a hidden name, `.harness-<token>`, until it is complete. The process
also creates a lock file beside it, `.harness-<token>.lock`. It holds the lock (`flock`) from before it uses
the hidden name until the name is gone. The system releases the lock when the process ends, for whatever
reason. Therefore, a process that gets the lock knows that no other process uses the hidden name. A process
creates and removes a lock file only while it holds the lock. This prevents a process that is just starting or
ending from counting as dead.

On some shared file systems, locks are invisible to other machines. Therefore, files from another machine, or
from before the last boot, count as dead only if nothing has changed them for a week.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

if sys.platform != "win32":
    import fcntl

_PREFIX, _LOCK, _OLD = ".harness-", ".lock", ".old"
_ABANDONED = 7 * 24 * 3600.0  # seconds
_PATIENCE = 1.0  # seconds: two renames take less


class Hold(NamedTuple):
    """A hidden name that belongs to this process.

    Attributes:
        path: the hidden name under which new content is written.
        old: the name to which the old content of the destination is moved. It is used if the system can't
            exchange two names in one step.
    """

    path: Path
    old: Path


@contextmanager
def held(place: Path) -> Iterator[Hold]:
    """Reserve a hidden name in the folder of a path during the block, and remove its file afterwards.

    Raises:
        OSError: the folder of the path can't be written to.
    """
    lock, descriptor = _new_lock(place.parent)
    try:
        os.write(descriptor, json.dumps({"place": place.name, "boot": _boot()}).encode())
        yield Hold(_hidden(lock), _hidden(lock, _OLD))
    finally:
        with suppress(OSError):
            _settle(lock, place)
        os.close(descriptor)


def clear(folder: Path) -> None:
    """Remove hidden files of dead processes from a folder, and move back content that they had renamed.

    If the system can't exchange two names, a process renames the old content of a path shortly before it puts
    the new content there.
    """
    with suppress(OSError):
        for lock in sorted(folder.glob(f"{_PREFIX}*{_LOCK}")):
            with suppress(OSError):
                _clear(lock)


def put_back(place: Path) -> None:
    """Wait while another process is replacing a path, and restore the path if the other process has died."""
    end = time.monotonic() + _PATIENCE
    with suppress(OSError):
        while not _there(place) and time.monotonic() < end:
            moved = [_lock_of(old) for old in place.parent.glob(f"{_PREFIX}*{_OLD}")]
            locks = [lock for lock in moved if _place(lock) == place.name]
            if not locks:
                return
            for lock in locks:
                _clear(lock)
            time.sleep(0.01)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with its content, if it exists.

    Raises:
        OSError: the path can't be removed completely.
    """
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _new_lock(folder: Path) -> tuple[Path, int]:
    while True:
        lock = folder / f"{_PREFIX}{os.urandom(6).hex()}{_LOCK}"
        try:
            descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        except FileExistsError:
            continue
        try:
            if _take(descriptor) and os.fstat(descriptor).st_nlink:
                return lock, descriptor
        except OSError:
            return lock, descriptor  # without locks, no process can conclude that this one is dead
        except BaseException:
            lock.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        os.close(descriptor)  # a clearing process was quicker


def _clear(lock: Path) -> None:
    """Clean up after a lock file if its process is dead."""
    descriptor = os.open(lock, os.O_RDWR)
    try:
        if not _take(descriptor) or not os.fstat(descriptor).st_nlink:
            return
        if _ours(lock) or time.time() - _touched(lock) > _ABANDONED:
            place = _place(lock)
            _settle(lock, lock.with_name(place) if place else None)
    finally:
        os.close(descriptor)


def _settle(lock: Path, place: Path | None) -> None:
    """Restore the content that was moved away, and remove the other files and finally the lock file."""
    old = _hidden(lock, _OLD)
    if _there(old):
        if place is None:
            return  # the lock file is damaged, so only the owner can know where the content belongs
        if not _there(place):
            old.rename(place)
    remove(old)
    remove(_hidden(lock))
    lock.unlink()


def _there(path: Path) -> bool:
    """Returns True if a path exists. Unlike `os.path.lexists`, the function doesn't hide errors of the disk.

    Raises:
        OSError: the system cannot tell.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def _take(descriptor: int) -> bool:
    """Tries to lock a file, and returns True if no other process holds the lock.

    Raises:
        OSError: the file system has no locks.
    """
    if sys.platform == "win32":
        raise OSError
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _hidden(lock: Path, ending: str = "") -> Path:
    return lock.with_name(lock.name.removesuffix(_LOCK) + ending)


def _lock_of(old: Path) -> Path:
    return old.with_name(old.name.removesuffix(_OLD) + _LOCK)


def _says(lock: Path, key: str) -> str | None:
    """Returns a value in a lock file, or None if the file is empty, for example because it is new."""
    with suppress(OSError, ValueError, AttributeError):
        found = json.loads(lock.read_text(encoding="utf-8")).get(key)
        return found if isinstance(found, str) else None
    return None


def _place(lock: Path) -> str | None:
    return _says(lock, "place")


def _ours(lock: Path) -> bool:
    """Returns True if this machine wrote a lock file since its last boot.

    If nobody holds the lock of such a file, the process that wrote the file is dead.
    """
    return _says(lock, "boot") in (None, _boot())


def _touched(lock: Path) -> float:
    """Returns when a lock file or a file that belongs to it last changed, in seconds."""
    hidden = _hidden(lock)
    times = [lock.stat().st_mtime]
    times += [each.lstat().st_mtime for each in (hidden, *hidden.rglob("*")) if _there(each)]
    return max(times)


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()
