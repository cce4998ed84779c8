"""Exchanges what two names stand for in one step, where the system can."""

from __future__ import annotations

import ctypes
import os
from errno import EINVAL, ENOSYS, ENOTSUP, EPERM
from functools import cache
from pathlib import Path
from typing import Any

_HERE = -100  # AT_FDCWD: names are relative to the working directory
_EXCHANGE = 2  # RENAME_EXCHANGE
_CANNOT = (EINVAL, ENOSYS, ENOTSUP, EPERM)
"""What a kernel or a file system says that does not know the call; some sandboxes say EPERM."""


def exchange(one: Path, other: Path) -> bool:
    """Exchange what two names of one file system stand for; nobody sees either of them absent.

    Returns:
        Whether it was done; False where the system has no such call.

    Raises:
        FileNotFoundError: one of them stands for nothing.
        OSError: they cannot be renamed.
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
    """The C library's function of that name; None where it has none (all but Linux)."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
