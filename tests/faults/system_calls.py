"""Lets chosen system calls of a process fail, or kills it there: Linux asks another process what to answer.

A process may have the kernel ask a supervisor about some of its system calls (seccomp's user notification).
Here the supervisor is the parent of the process: it counts the calls that concern files below one folder, or
memory, and has one of them fail with an error, without the process or any library in it knowing. It needs no
rights, no compiler and nothing but Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import select
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

# name: number on x86_64, number on aarch64, what it does, where its descriptors and its paths are
_CALLS = {
    "read": (0, 63, "read", "f"),
    "write": (1, 64, "write", "f"),
    "open": (2, None, "open", "p"),
    "stat": (4, None, "look", "p"),
    "fstat": (5, 80, "look", "f"),
    "lstat": (6, None, "look", "p"),
    "mmap": (9, 222, "memory", "....f"),
    "brk": (12, 214, "memory", ""),
    "pread64": (17, 67, "read", "f"),
    "pwrite64": (18, 68, "write", "f"),
    "readv": (19, 65, "read", "f"),
    "writev": (20, 66, "write", "f"),
    "access": (21, None, "look", "p"),
    "mremap": (25, 216, "memory", ""),
    "flock": (73, 32, "lock", "f"),
    "fsync": (74, 82, "sync", "f"),
    "fdatasync": (75, 83, "sync", "f"),
    "ftruncate": (77, 46, "write", "f"),
    "rename": (82, None, "rename", "pp"),
    "mkdir": (83, None, "make", "p"),
    "rmdir": (84, None, "remove", "p"),
    "unlink": (87, None, "remove", "p"),
    "chmod": (90, None, "look", "p"),
    "getdents64": (217, 61, "read", "f"),
    "openat": (257, 56, "open", "dp"),
    "mkdirat": (258, 34, "make", "dp"),
    "newfstatat": (262, 79, "look", "dp"),
    "unlinkat": (263, 35, "remove", "dp"),
    "renameat": (264, 38, "rename", "dpdp"),
    "fchmodat": (268, 53, "look", "dp"),
    "faccessat": (269, 48, "look", "dp"),
    "renameat2": (316, 276, "rename", "dpdp"),
    "statx": (332, 291, "look", "dp"),
    "faccessat2": (439, 439, "look", "dp"),
}
ERRORS = {
    "read": ("EIO", "EINTR"),
    "write": ("ENOSPC", "EIO", "EINTR"),
    "open": ("EIO", "EMFILE", "EINTR"),
    "look": ("EIO",),
    "memory": ("ENOMEM",),
    "lock": ("ENOLCK", "EINTR"),
    "sync": ("EIO", "ENOSPC", "EINTR"),
    "rename": ("EIO", "ENOSPC"),
    "make": ("ENOSPC", "EIO"),
    "remove": ("EIO",),
}
"""What a call can fail with, by what it does."""

_ARCHITECTURES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
_COLUMN, _ARCHITECTURE, _SECCOMP = _ARCHITECTURES.get(platform.machine(), (0, 0, 0))
_BY_NUMBER = {row[_COLUMN]: name for name, row in _CALLS.items() if row[_COLUMN] is not None}

_RECEIVE, _SEND, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082104
_SAME_PROCESSOR = 1
_NOTICE, _ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_GO_ON = 1
_PATH = 4096


class Call(NamedTuple):
    """A system call that was counted: its name, what it does, and the file that it is about."""

    name: str
    kind: str
    file: str


@dataclass
class Fault:
    """What is to happen at one of the calls that are counted.

    Attributes:
        at: its number, from 0; calls before it and after it are carried out.
        error: with what it fails, such as ENOSPC; None kills the process in its place.
        always: calls that fail whenever they are made, and with what: a system that does not have them.
    """

    at: int = -1
    error: str | None = None
    always: dict[str, str] = field(default_factory=dict)


def available() -> bool:
    """Whether the kernel has what it takes."""
    try:
        actions = Path("/proc/sys/kernel/seccomp/actions_avail").read_text()
    except OSError:
        return False
    return "user_notif" in actions and platform.machine() in _ARCHITECTURES


def supervised(run: Callable[[], int], below: Path, kinds: set[str], fault: Fault) -> tuple[int, list[Call]]:
    """Run something in a process of its own; answers its exit code and the calls that were counted.

    With a fault calls are counted up to the one that fails.

    Args:
        run: what to run; answers the exit code.
        below: files below this folder count, and what is written to the standard output.
        kinds: what counts, of the keys of `ERRORS`.
        fault: what is to happen.
    """
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            ours.close()
            socket.send_fds(theirs, [b"."], [_filtered(kinds, fault)])
            theirs.close()
            code = run()
        finally:
            os._exit(code)
    theirs.close()
    _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    calls: list[Call] = []
    for listener in descriptors:
        calls += _counted(child, listener, os.fspath(below), fault)
        os.close(listener)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), calls


def _counted(child: int, listener: int, below: str, fault: Fault) -> Iterator[Call]:
    """Answer a process' questions until it is over."""
    poll, number = select.poll(), 0
    poll.register(listener, select.POLLIN)
    with contextlib.suppress(OSError):  # older kernels do without, and take longer
        fcntl.ioctl(listener, _SET_FLAGS, _SAME_PROCESSOR)
    while True:
        ((_, event),) = poll.poll()
        if not event & select.POLLIN:
            return
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, notice)
        except OSError:
            continue  # killed meanwhile
        cookie, thread, _, call_number, _, _, *arguments = _NOTICE.unpack(notice)
        over = 0 <= fault.at < number  # what comes after the fault is not counted, which saves time
        call = None if over else _understood(thread, _BY_NUMBER[call_number], arguments, below)
        error = fault.always.get(_BY_NUMBER[call_number])
        if call is not None and error is None:
            if number == fault.at:
                if fault.error is None:
                    os.kill(child, signal.SIGKILL)
                    error = "EIO"
                else:
                    error = fault.error
            number += 1
            yield call
        answer = (cookie, 0, -getattr(errno, error), 0) if error else (cookie, 0, 0, _GO_ON)
        try:
            fcntl.ioctl(listener, _SEND, _ANSWER.pack(*answer))
        except OSError:
            continue


def _understood(thread: int, name: str, arguments: list[int], below: str) -> Call | None:
    """What a call is about; None if it does not count."""
    kind, places = _CALLS[name][2:]
    if kind == "memory":
        if name == "mmap" and not arguments[3] & 0x20:  # of a file
            file = _descriptor(thread, arguments[4])
            return Call(name, kind, file) if file.startswith(below) else None
        if name == "brk" and not arguments[0]:
            return None
        return Call(name, kind, "")
    folder, file = "", ""
    for argument, place in zip(arguments, places, strict=False):
        if place == "f":
            file = "stdout" if argument == 1 and name == "write" else _descriptor(thread, argument)
        elif place == "d":
            folder = _descriptor(thread, argument)
        elif place == "p":
            file = os.path.normpath(os.path.join(folder or _link(thread, "cwd"), _text(thread, argument)))  # noqa: PTH118 - often
        if file.startswith(below) or file == "stdout":
            return Call(name, kind, os.path.relpath(file, below) if file != "stdout" else file)
    return None


def _descriptor(thread: int, number: int) -> str:
    number = number & 0xFFFFFFFF
    return _link(thread, "cwd" if number == 0xFFFFFF9C else f"fd/{number}")


def _link(thread: int, name: str) -> str:
    try:
        return os.readlink(f"/proc/{thread}/{name}")  # noqa: PTH115 - it is asked often
    except OSError:
        return ""


def _text(thread: int, address: int) -> str:
    """A path in a process' memory."""
    if not address:
        return ""
    try:
        with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            return os.fsdecode(memory.read(_PATH).split(b"\0", 1)[0])
    except OSError:
        return ""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _filtered(kinds: set[str], fault: Fault) -> int:
    """Have the kernel ask about our calls from now on; answers where to hear the questions."""
    numbers = [
        number for number, name in _BY_NUMBER.items() if _CALLS[name][2] in kinds or name in fault.always
    ]
    instruction = struct.Struct("=HBBI")
    load, equal, answer = 0x20, 0x15, 0x06
    allow, ask = 0x7FFF0000, 0x7FC00000
    program = [(load, 0, 0, 4), (equal, 0, len(numbers) + 1, _ARCHITECTURE), (load, 0, 0, 0)]
    program += [(equal, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    program += [(answer, 0, 0, allow), (answer, 0, 0, ask)]
    code = b"".join(instruction.pack(*each) for each in program)
    library = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_filter, new_listener = 38, 1, 8
    library.prctl(no_new_privileges, 1, 0, 0, 0)
    program_ = _Program(len(program), code)
    descriptor = library.syscall(_SECCOMP, set_filter, new_listener, ctypes.byref(program_))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    os.set_inheritable(descriptor, False)
    return int(descriptor)
