"""Has calls of a command fail one by one, and checks what is left each time."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from faults.system_calls import ERRORS, Call
from faults.worlds import WORLDS, Driver, Ended, content, hidden, make, plain

SAID = {
    "ENOSPC": ("No space left on device",),
    "EIO": ("Input/output error", "is not readable", "Permission denied", "error stat()ing file"),
    "EINTR": ("",),  # most calls are made again, the rest is no matter of the user's
    "EMFILE": ("Too many open files",),
    "ENOLCK": ("No locks available",),
    "ENOMEM": (
        "not enough memory",
        "more memory than there is",
        "Cannot allocate memory",
        "launch worker thread",
    ),
}
"""What a message says of an error, in any of these words."""


class Injected(NamedTuple):
    """A fault: the call that fails, its number among those counted, and with what; KILL kills."""

    at: int
    call: Call
    error: str

    def __str__(self) -> str:
        return f"{self.error} at {self.at}: {self.call.name} {plain(self.call.file)}"


@dataclass
class Found:
    """What came of the faults.

    Attributes:
        outcomes: how often what happened.
        wrong: what should not have.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Explorer:
    """One command on files as they were before it.

    Args:
        folder: for all that is written; the command runs in a folder below it.
        name: of `WORLDS`.
        driver: runs the command in `folder / "here"`.
    """

    def __init__(self, folder: Path, name: str, driver: Driver) -> None:
        self.name, self.world, self.driver = name, WORLDS[name], driver
        self.here, self.template = folder / "here", folder / f"template of {name}"
        for left in (self.here, self.template):
            shutil.rmtree(left, ignore_errors=True)
        make(self.here)
        for command in self.world.before:
            self.run(command)
        shutil.copytree(self.here, self.template)
        self.before = content(self.here)
        self._repairs: dict[bytes, list[str]] = {self._state(): []}
        runs = sorted(str(path.relative_to(self.here)) for path in self.here.glob("results/trace/none-*"))
        self.run_before = runs[0] if runs else ""
        self.reference = self.run(self.world.args)
        self.after = content(self.here)

    def fresh(self) -> None:
        """The files as they were before the command."""
        shutil.rmtree(self.here, ignore_errors=True)
        shutil.copytree(self.template, self.here)

    def run(self, command: list[str]) -> Ended:
        """Run a command without a fault: it must end well."""
        ended = self.driver.load([self._place(word) for word in command])
        assert ended.code == 0, ended
        return ended

    def run_with(self, kind: str, at: int, error: str | None) -> Ended:
        """Run the command on fresh files with a fault."""
        self.fresh()
        args = [self._place(word) for word in self.world.args]
        return self.driver(args, calls=kind, at=at, error=error, always=self.world.lacks)

    def faults(self, kind: str) -> Iterator[Injected]:
        """Each call with each of its errors, and a kill before it."""
        for at, call in enumerate(self.run_with(kind, -1, None).calls):
            errors = {"functions": ("ENOMEM",), "memory": ("ENOMEM",)}.get(kind, ())
            for error in errors or (*ERRORS[call.kind], "KILL"):
                yield Injected(at, call, error)

    def explore(self, kind: str, faults: Iterable[Injected]) -> Found:
        """Try each fault, then the same command again."""
        found = Found()
        for fault in faults:
            outcome, wrong = self.tried(kind, fault)
            found.outcomes[outcome] += 1
            found.wrong += wrong
        return found

    def tried(self, kind: str, fault: Injected) -> tuple[str, list[str]]:
        """What came of one fault, and what is wrong with it."""
        ended = self.run_with(kind, fault.at, None if fault.error == "KILL" else fault.error)
        if kind == "memory" and fault.at >= len(ended.calls):
            return "not made this time", []
        wrong = [*self._reached(fault, ended), *self._ending(fault, ended), *self._left(fault, ended)]
        wrong += self._repaired()
        return self._outcome(fault, ended), [f"{self.name}, {fault}: {each}" for each in wrong]

    def _reached(self, fault: Injected, ended: Ended) -> Iterator[str]:
        """What is wrong with the call that failed: it must be the one that was meant; of memory, any."""
        calls = [call._replace(file=plain(call.file)) for call in ended.calls[fault.at :][:1]]
        if fault.call.kind != "memory" and calls != [fault.call._replace(file=plain(fault.call.file))]:
            yield f"it was another call that failed, {calls}"

    def _repaired(self) -> list[str]:
        """What is wrong once the same command was given again: with the same files it does the same."""
        state = self._state()
        if state not in self._repairs:
            again = self.driver([self._place(word) for word in self.world.args])
            well = again.code == 0 and content(self.here) == self.after
            self._repairs[state] = (
                []
                if well
                else [f"the command does not repair it: {again.code} {again.err!r} {self._difference()}"]
            )
        return self._repairs[state]

    def _state(self) -> bytes:
        """All that a command finds, but for what is drawn at random and when it was written."""
        found = content(self.here)
        listed = [
            (plain(name := str(path.relative_to(self.here))), path.stat().st_mode, found.get(name, b""))
            for path in self.here.rglob("*")
        ]
        return hashlib.sha256(repr(sorted(listed)).encode()).digest()

    def _ending(self, fault: Injected, ended: Ended) -> Iterator[str]:
        """What is wrong with the exit code and the message."""
        if fault.error == "KILL":
            if ended.code != -9:
                yield f"it was killed, and ended with {ended.code}"
        elif ended.code == 0:
            if content(self.here) != self.after and not self._kept_hidden(fault):
                yield f"it ended well, but what it wrote differs: {self._difference()}"
            if ended.out != self.reference.out:
                yield f"it ended well, but said {ended.out!r}"
        elif ended.code == 2:
            if "Error: " not in ended.err or "Traceback" in ended.err:
                yield f"it said {ended.err!r}"
            elif not any(reason in ended.err for reason in SAID[fault.error]):
                yield f"it did not say {SAID[fault.error]!r}: {ended.err!r}"
        elif not (fault.call.kind == "memory" and ended.code < 0):
            yield f"it ended with {ended.code}: {ended.err!r}"

    def _left(self, fault: Injected, ended: Ended) -> Iterator[str]:
        """What is wrong with the files that are there now."""
        if self.world.lacks:  # who reads next puts back what was moved away
            read = self.driver(["compare", self.run_before])
            if read.code != 0:
                yield f"the run cannot be read: {read.err!r}"
        now = {name: data for name, data in content(self.here).items() if not hidden(name)}
        for name in self.before.keys() - now.keys():
            yield f"{name} is lost"
        for name, data in now.items():
            if data not in (self.before.get(name), self.after.get(name)) and not _kept_unmeasured(name, now):
                yield f"{name} is neither as before nor as it should be"
        for folder in {Path(name).parent for name in now if name.startswith("results/")}:
            whole = {name for name in self.after if Path(name).parent == folder}
            if whole - now.keys():
                yield f"{folder} is not whole: there is no {sorted(whole - now.keys())}"
        if ended.code >= 0 and not self._kept_hidden(fault):
            left = list(self.here.rglob(".harness-*"))
            if left:
                yield f"left behind: {sorted(plain(path.name) for path in left)}"

    def _kept_hidden(self, fault: Injected) -> bool:
        """Whether the fault may keep hidden files from being removed."""
        if fault.call.kind == "function":
            return fault.call.file in ("hold.py:_settle", "hold.py:_there", "hold.py:remove")
        if self.world.lacks and fault.call.kind == "look" and fault.call.file == self.run_before:
            return True  # the old run is kept beside its place until that is known to hold the new one
        return hidden(fault.call.file) and fault.call.kind in ("remove", "open", "read", "look", "lock")

    def _outcome(self, fault: Injected, ended: Ended) -> str:
        if ended.code < 0:
            return "killed" if fault.error == "KILL" else "ended by the system"
        return "carried out" if ended.code == 0 else f"exit code {ended.code}"

    def _difference(self) -> list[str]:
        now = content(self.here)
        return sorted(
            plain(name) for name in now.keys() | self.after.keys() if now.get(name) != self.after.get(name)
        )

    def _place(self, word: str) -> str:
        """A word of a command, with the folder of the run that it means."""
        name = {"RUN": "none", "OTHER": "none@other"}.get(word)
        if name is None:
            return word
        (run,) = self.here.glob(f"results/trace/{name}-*")
        return str(run.relative_to(self.here))


def _kept_unmeasured(name: str, files: Mapping[str, bytes]) -> bool:
    """Whether a file is of a run that is whole but for metrics that failed, and says so."""
    info = files.get(str(Path(name).parent / "run.json"), b"{}")
    return Path(name).name in ("metrics.parquet", "run.json") and "unmeasured" in json.loads(info)


def some(faults: Iterable[Injected], most: int, seed: int) -> list[Injected]:
    """At most so many faults, as different as can be: of each call of its kind one, then any."""
    several = list(faults)
    random.Random(seed).shuffle(several)
    seen: set[tuple[str, str]] = set()
    first, rest = [], []
    for fault in several:
        key = (fault.call.kind, plain(fault.call.file))
        (rest if key in seen else first).append(fault)
        seen.add(key)
    return (first + rest)[:most]
