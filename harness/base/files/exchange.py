"""Exchanges the targets of two names in one step, if the system can."""

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
"""Errors of kernels or file systems that do not support the call; some sandboxes give EPERM."""


def exchange(one: Path, other: Path) -> bool:
    """Exchange the targets of two names on one file system, so that both names always exist.

    Returns:
        True if done; False if the system has no such call.

    Raises:
        FileNotFoundError: one of the names does not exist.
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
    """Returns the function `renameat2` of the C library; None if the library lacks it, as outside Linux."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
