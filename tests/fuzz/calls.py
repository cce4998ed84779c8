"""Two ways to run a command: in this process, and as one of its own, which is stopped at its limits."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path

from cli_environment import called, clean_environment

from fuzz.judge import CPU_SECONDS, MEGABYTES, Call, Ended

_TICK = os.sysconf("SC_CLK_TCK")
_HANGS = 600  # seconds by the clock, for what waits and does not work
_GLANCE = 0.05  # seconds between looks at what a process has used


@contextmanager
def inside(folder: Path) -> Iterator[Call]:
    """Runs commands in this process, in a folder."""
    before = Path.cwd()

    def call(words: list[str]) -> Ended:
        out, err = StringIO(), StringIO()
        try:
            with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
                warnings.simplefilter("error")
                code = called(words)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return Ended(None, out.getvalue(), f"{err.getvalue()}\nTraceback: {type(error)}: {error}")
        return Ended(code, out.getvalue(), err.getvalue())

    os.chdir(folder)
    try:
        yield call
    finally:
        os.chdir(before)


@contextmanager
def outside(folder: Path) -> Iterator[Call]:
    """Runs commands as processes of their own in a folder, and stops them at their limits."""
    environment = {**clean_environment(), "POLARS_MAX_THREADS": "1", "PYTHONWARNINGS": "error"}

    def call(words: list[str]) -> Ended:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given = [word.partition("\0")[0] for word in words]  # where the system ends an argument
            command = [str(Path(sys.executable).with_name("harness")), *given]
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

            def over(seconds: float) -> bool:
                try:
                    process.wait(seconds)
                except subprocess.TimeoutExpired:
                    return False
                return True

            stopped = watched(process.pid, over, cpu=0.0)
            if stopped:
                process.send_signal(signal.SIGKILL)
            code = process.wait()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
            return Ended(None, texts[0], f"{texts[1]}\n{stopped}") if stopped else Ended(code, *texts)

    yield call


def watched(pid: int, over: Callable[[float], bool], *, cpu: float) -> str:
    """Wait for the end of a process's work; answers the limit that it broke, or nothing.

    Args:
        pid: the process.
        over: waits up to so many seconds; answers whether its work is done, at once when it is.
        cpu: the CPU-seconds that it had when the work began.
    """
    began = time.monotonic()
    while not over(_GLANCE):
        spent, used = of_process(pid)
        if spent - cpu > CPU_SECONDS:
            return f"took more than {CPU_SECONDS} CPU-s"
        if used > MEGABYTES:
            return f"took more than {MEGABYTES} MB"
        if time.monotonic() - began > _HANGS:
            return f"did not end in {_HANGS} s"
    return ""


def of_process(pid: int) -> tuple[float, float]:
    """The CPU-seconds that a process has had, and the most memory it held at once, in MB."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0, 0.0
    peak = next((int(line.split()[1]) for line in status.split("\n") if line.startswith("VmHWM:")), 0)
    return (int(fields[11]) + int(fields[12])) / _TICK, peak / 1000


def forget_peak() -> None:
    """Let the most memory that this process held be what it holds now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def keep_low() -> None:
    """Give way to others, and leave no image of a process that died."""
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
