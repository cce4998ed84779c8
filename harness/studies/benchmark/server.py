"""Evaluates policies in copies of this process, so that no copy has to import modules again.

This process never runs the code of a policy, and it reads only the output of its copies. For each evaluation,
it makes two confined copies. The first copy replays the policy. The second copy judges the runs by their
decisions, without seeing the policy.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import IO, Any

from harness.base.confined import limit_files, limit_memory, limit_resources, refuse_calls
from harness.base.errors import HarnessError, text_of
from harness.plugins import Plugins, load
from harness.runs.identity import codes_of_metrics, look_at, looked_at_once
from harness.studies.benchmark.policy_source import unpacked

_PAUSE = 0.002
_LONGEST_TEXT = 20_000
_LONGEST_ANSWER = 16_000_000
_LIMITS = ("memory", "output", "files", "processes and network")
_JUDGING = 600
_SYSTEM = ("/usr", "/lib", "/lib64", "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/sys", "/dev/urandom")
_USED = (
    *("harness.cluster.changes", "harness.trace", "harness.models", "harness.engine", "harness.runs"),
    *("harness.analysis.metrics", "harness.analysis.explanation", "harness.studies.benchmark.judging"),
)
_SUBREAPER = 36
_LENGTH = struct.Struct("<Q")


def send(stream: IO[bytes], message: bytes) -> None:
    """Writes a message, preceded by its length."""
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def received(stream: IO[bytes]) -> bytes | None:
    """Returns the next message, or None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    found = stream.read(length)
    return found if len(found) == length else None


def main() -> None:
    """Answers requests for evaluations until the input ends."""
    _import_all()
    libraries = {"replay": load(block=["metrics"]), "judge": load()}
    _adopt_orphans()
    inputs: dict[str, bytes] = {}
    with looked_at_once({}):
        for spec in libraries["replay"].policies:
            look_at(spec)
        codes_of_metrics(libraries["judge"].metrics)
        gc.freeze()  # Otherwise, garbage collection in a copy would copy memory pages.
        while (message := received(sys.stdin.buffer)) is not None:
            asked = pickle.loads(message)  # noqa: S301 - from the process that began this one
            inputs.update(asked.pop("inputs", {}))
            answer = _evaluated(asked, inputs[asked["digest"]], libraries)
            send(sys.stdout.buffer, json.dumps(answer).encode())


def _import_all() -> None:
    for name in _USED:
        package = import_module(name)
        for module in walk_packages(getattr(package, "__path__", ()), f"{name}."):
            import_module(module.name)


def _evaluated(asked: Mapping[str, Any], inputs: bytes, libraries: Mapping[str, Plugins]) -> dict[str, Any]:
    """Returns the answer of `judging.judged`, or an `error`. Either one also has `printed` and `held`."""
    place = Path(asked["folder"])
    first, second = place / "replay", place / "judge"
    for folder in (first, second):
        folder.mkdir()
    why = _in_a_copy(lambda: _replay(asked, inputs, libraries["replay"], first), asked["seconds"], first)
    told = _told(first / "answer.json")
    answer: dict[str, Any] = {
        "printed": _read(first / "printed.txt", _LONGEST_TEXT),
        "held": [name for name in _LIMITS if name in told.get("held", ())],
    }
    if why or told.get("error") or not told.get("done"):
        error = why or told.get("error") or "its process ended without an answer"
        return {**answer, "error": str(error)[:_LONGEST_TEXT]}

    def judge() -> None:
        from harness.studies.benchmark.judging import judged

        _confine(second, asked["memory"], _JUDGING, asked["size"], also=(first,))
        found = judged(inputs, first, libraries["judge"], brief=asked["brief"])
        (second / "answer.json").write_text(json.dumps(found), encoding="utf-8")

    why = _in_a_copy(judge, _JUDGING, second)
    return {**answer, **(_told(second / "answer.json") or {"error": f"its runs cannot be judged: {why}"})}


def _replay(asked: Mapping[str, Any], inputs: bytes, plugins: Plugins, folder: Path) -> None:
    """Replays a policy on every twin. If the policy fails, the answer contains the reason."""
    answer: dict[str, Any] = {"done": False}
    requests = pickle.loads(inputs)  # noqa: S301 - from the process that began the server
    sys.path[:] = asked["path"]
    answer["held"] = _confine(folder, asked["memory"], asked["seconds"], asked["size"])
    try:
        policy = unpacked(asked["policy"])
        for number, request in enumerate(requests, start=1):
            request.of(policy, asked["options"], folder / str(number)).run(plugins=plugins)
        answer["done"] = True
    except HarnessError as error:
        answer["error"] = f"{error.message}\nHint: {error.hint}" if error.hint else error.message
    except MemoryError:
        answer["error"] = "it needs more memory than its limit allows"
    except BaseException as error:  # Any exception of a policy counts as its result.
        answer["error"] = f"{type(error).__name__}: {text_of(error)}"
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def _confine(folder: Path, memory: int, seconds: float, size: int, also: tuple[Path, ...] = ()) -> list[str]:
    os.environ["TMPDIR"] = str(folder)
    import tempfile

    tempfile.tempdir = str(folder)
    read = [Path(each) for each in (*_SYSTEM, sys.prefix, sys.base_prefix, *filter(None, sys.path)) if each]
    held = (
        limit_memory(memory),
        limit_resources(int(seconds) + 1, size),
        limit_files(folder, [*read, *also]),
        refuse_calls(),
    )
    return [name for name, is_held in zip(_LIMITS, held, strict=True) if is_held]


def _in_a_copy(work: Callable[[], None], seconds: float, folder: Path) -> str:
    """Does some work in a copy of this process. Returns the reason if it fails, or else ""."""
    child = os.fork()
    if not child:
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            out = os.open(folder / "printed.txt", os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(out, 1)
            os.dup2(out, 2)
            work()
            sys.stdout.flush()
        finally:
            os._exit(0)
    deadline, why = time.monotonic() + seconds, ""
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            why = f"it took longer than {seconds:g} s and was stopped"
            _end(child)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(_PAUSE)
    for orphan in _children():
        _end(orphan)
    if why:
        return why
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return f"it took longer than {seconds:g} CPU-s and was stopped"
        return f"its process was ended by {signal.Signals(number).name}"
    return ""


def _end(process: int) -> None:
    for end in (os.killpg, os.kill):
        with suppress(OSError):
            end(process, signal.SIGKILL)


def _children() -> Iterator[int]:
    """Yields the remaining child processes of this process, where the system can list them."""
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    except OSError:
        return
    yield from map(int, text.split())


def _adopt_orphans() -> None:
    """Makes this process the parent of processes whose parent has ended, where the system supports it."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _told(path: Path) -> dict[str, Any]:
    """Returns the output of a copy as plain values, which the caller must check."""
    try:
        found = json.loads(_read(path, _LONGEST_ANSWER))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _read(path: Path, most: int) -> str:
    """Returns the beginning of a file, or "" if it is a link or a pipe that a policy made, for example."""
    try:
        place = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(place, "rb") as file:
        regular = stat.S_ISREG(os.fstat(place).st_mode)
        return file.read(most).decode("utf-8", "replace") if regular else ""


if __name__ == "__main__":
    main()
