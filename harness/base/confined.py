"""Restricts the memory, time, files, processes and network access of a process that runs untrusted code.

Each function returns whether the system enforces the limit. No function needs privileges. On Linux,
Landlock restricts files (kernel documentation, userspace-api/landlock), and a filter of system calls
restricts processes and sockets (userspace-api/seccomp_filter). Other systems enforce only the limits of
`setrlimit`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_LANDLOCK = (444, 445, 446)
"""The numbers of the system calls that create a set of rules, add a rule and apply the rules to this process.

They are the same on every architecture.
"""

_READS = 0b1101  # execute, read files, read folders
_NO_LINKS = 0b1_1110_0100_0001  # execute; make devices, sockets, pipes and links
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_THREAD = 0x10000

_CALLS = {
    "x86_64": (
        0xC000003E,
        (
            *(41, 42, 43, 49, 50, 53, 288),  # socket, connect, accept, bind, listen, socketpair, accept4
            *(57, 58, 59, 322, 62, 200, 424),  # fork, vfork, execve, execveat, kill, tkill, pidfd_send_signal
            *(101, 109, 112, 160, 310, 311),  # ptrace, setpgid, setsid, setrlimit, process_vm_readv, -writev
            *(
                155,
                161,
                165,
                166,
                272,
                304,
                308,
            ),  # pivot_root, chroot, mount, umount2, unshare, handles, setns
            *(250, 298, 321, 323, 425),  # keyctl, perf_event_open, bpf, userfaultfd, io_uring_setup
        ),
        (56, 435, 302),  # clone, clone3, prlimit64
    ),
    "aarch64": (
        0xC00000B7,
        (
            *(198, 199, 200, 201, 202, 203, 242),  # the same calls for sockets as above
            *(221, 281, 129, 130, 424),  # execve, execveat, kill, tkill, pidfd_send_signal
            *(117, 154, 157, 164, 270, 271),  # ptrace, setpgid, setsid, setrlimit, process_vm_readv, -writev
            *(39, 40, 41, 51, 97, 265, 268),  # mounts, namespaces, handles of files
            *(219, 241, 280, 282, 425),  # keyctl, perf_event_open, bpf, userfaultfd, io_uring_setup
        ),
        (220, 435, 261),
    ),
}
"""Maps an architecture to its number, the calls to deny always, and the calls to deny for some arguments."""


def limit_memory(memory: int) -> bool:
    """Limit the memory of this process to a number of bytes."""
    return _limited("RLIMIT_DATA", memory)


def limit_resources(seconds: int, size: int) -> bool:
    """Limit the CPU seconds of this process and the size of its files, and disable core dumps."""
    return all([_limited("RLIMIT_CPU", seconds), _limited("RLIMIT_FSIZE", size), _limited("RLIMIT_CORE", 0)])


def limit_files(write: Path, read: Iterable[Path]) -> bool:
    """Let this process write only below one folder, and read only below this folder and the given folders.

    Open files stay open. The process can also write files without content, such as `/dev/null`.
    """
    kernel = _kernel()
    if kernel is None:
        return False
    make, add, restrict = _LANDLOCK
    version = kernel.syscall(make, None, 0, 1)
    if version < 1:
        return False
    every = (1 << (13 if version < 2 else 14 if version < 3 else 15)) - 1
    rules = kernel.syscall(make, struct.pack("=Q", every), 8, 0)
    if rules < 0:
        return False
    allowed = {**dict.fromkeys(read, _READS), Path(os.devnull): 0b0110, write: every & ~_NO_LINKS}
    for path, rights in allowed.items():
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        mine = rights if path.is_dir() else rights & 0b111
        kernel.syscall(add, rules, 1, struct.pack("=Qi", mine, place), 0)
        os.close(place)
    kernel.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    held = bool(kernel.syscall(restrict, rules, 0) == 0)
    os.close(rules)
    return held


def refuse_calls() -> bool:
    """Deny this process sockets, child processes, and signals to other processes, but allow threads."""
    kernel, machine = _kernel(), _CALLS.get(platform.machine())
    if kernel is None or machine is None:
        return False
    number, refused, (clone, clone3, limits) = machine
    program = [
        _step(_LOAD, 4),
        _step(_EQUAL, number, 1, 0),
        _step(_RETURN, _EPERM),
        _step(_LOAD, 0),
        _step(_EQUAL, clone3, 0, 1),
        _step(_RETURN, _ENOSYS),  # so that threads are made by clone, whose flags the filter can inspect
        _step(_EQUAL, clone, 0, 4),
        _step(_LOAD, 16),
        _step(_ANY_BIT, _THREAD, 1, 0),
        _step(_RETURN, _EPERM),
        _step(_RETURN, _ALLOW),
        _step(_EQUAL, limits, 0, 4),
        _step(_LOAD, 32),
        _step(_EQUAL, 0, 1, 0),
        _step(_RETURN, _EPERM),
        _step(_RETURN, _ALLOW),
    ]
    for call in refused:
        program += [_step(_EQUAL, call, 0, 1), _step(_RETURN, _EPERM)]
    program.append(_step(_RETURN, _ALLOW))
    steps = ctypes.create_string_buffer(b"".join(program))
    whole = struct.pack("=H6xQ", len(program), ctypes.addressof(steps))
    kernel.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return bool(kernel.prctl(_SET_SECCOMP, _FILTER, whole, 0, 0) == 0)


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """Returns an encoded instruction.

    A comparison skips the next `yes` instructions if it is true, and the next `no` instructions otherwise.
    """
    return struct.pack("=HBBI", code, yes, no, value)


def _kernel() -> ctypes.CDLL | None:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _limited(name: str, amount: int) -> bool:
    try:
        import resource
    except ImportError:
        return False
    limit = getattr(resource, name)
    _, most = resource.getrlimit(limit)
    bound = amount if most == resource.RLIM_INFINITY else min(amount, most)
    try:
        resource.setrlimit(limit, (bound, bound))
    except (OSError, ValueError):
        return False
    return True
