"""Converts the output of `sacct --json` to records.

Numbers are plain or, in newer versions, objects such as `{"set": ..., "number": ...}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import Fault, TraceError
from harness.base.json_text import mapping_of
from harness.base.units import INT64_MAX, SECOND
from harness.readers.source import read_json, shown, stop_at_many
from harness_plugins.readers.slurm.amounts import MIB, Tres, tres_of_counts
from harness_plugins.readers.slurm.cells import COMMAND
from harness_plugins.readers.slurm.record import (
    REQUEUED,
    RESIZING,
    STEPS,
    Dump,
    Record,
    identity_of,
    minutes_of,
)

_MOST = 10**12
_COUNTED = frozenset(("cpu", "mem", "node", "gres", "license", "bb"))
_FLAGS = frozenset((REQUEUED, RESIZING, "COMPLETING", "REQUEUE_HOLD", "SPECIAL_EXIT"))


def read_document(path: Path) -> Dump:
    """Reads the records of a file from `sacct --json`.

    Raises:
        TraceError: the file is of another kind, or entries are malformed. The error lists all faults.
    """
    document = read_json(path)
    jobs = document.get("jobs") if isinstance(document, Mapping) else None
    if not isinstance(jobs, list):
        what = "is not what sacct --json prints: there is no list of jobs"
        raise TraceError(str(path), [Fault("", what)], hint=f"run sacct with --json, or run {COMMAND}")
    faults: list[Fault] = []
    records: list[Record] = []
    steps = 0
    for number, job in enumerate(jobs, start=1):
        if not isinstance(job, Mapping):
            faults.append(Fault(f"entry {number:,}", "is not an object"))
        else:
            listed = job.get("steps")
            steps += len(listed) if isinstance(listed, list) else 0
            record = _Entry(f"entry {number:,}", job, faults).record()
            if record is not None:
                records.append(record)
        stop_at_many(path, faults)
    if faults:
        raise TraceError(str(path), faults)
    if not records:
        raise TraceError(
            str(path), [Fault("", "holds no jobs")], hint=f"run sacct with --json, or run {COMMAND}"
        )
    return Dump(records, len(records) + steps, {STEPS: steps} if steps else {})


class _Entry:
    def __init__(self, place: str, job: Mapping[str, Any], faults: list[Fault]) -> None:
        self._place = place
        self._job = job
        self._faults = faults

    def record(self) -> Record | None:
        """Returns the allocation of the entry. If the entry is malformed, adds faults and returns None."""
        before = len(self._faults)
        times = mapping_of(self._job, "time")
        number = self._number(self._job, "job_id")
        if number is None:
            self._fault("job_id", "is missing")
            return None
        elapsed, suspended = self._number(times, "elapsed"), self._number(times, "suspended")
        limit = self._number(times, "limit")
        restarts = self._number(self._job, "restart_cnt")
        allocated, requested = self._tres("allocated"), self._tres("requested")
        start, end = self._time(times, "start"), self._time(times, "end")
        state, by = self._state(ended=end is not None)
        submit, eligible = self._time(times, "submission"), self._time(times, "eligible")
        label = self._label(number)
        if len(self._faults) > before:
            return None
        name = self._job.get("name")
        return Record(
            self._place,
            self._text("cluster"),
            identity_of(str(number), label),
            self._text("user") or self._text("user_name"),
            self._text("account"),
            self._text("partition"),
            self._text("qos"),
            name if isinstance(name, str) else None,
            state,
            by,
            submit,
            eligible,
            start,
            end,
            None if elapsed is None else elapsed * SECOND,
            (suspended or 0) * SECOND,
            None if limit is None or limit == 0 else minutes_of(limit),
            restarts,
            allocated,
            requested,
            bool(allocated),
        )

    def _label(self, number: int) -> str:
        """Returns `JobID` as `sacct -P` prints it."""
        array, het = mapping_of(self._job, "array"), mapping_of(self._job, "het")
        of_array, task = self._number(array, "job_id"), self._number(array, "task_id")
        of_het, offset = self._number(het, "job_id"), self._number(het, "job_offset")
        if of_het:
            return f"{of_het}+{offset or 0}"
        if of_array and isinstance(array.get("task"), str) and array["task"]:
            return f"{of_array}_[{array['task']}]"
        return f"{of_array}_{task}" if of_array and task is not None else str(number)

    def _state(self, *, ended: bool) -> tuple[str, bool]:
        """Returns the state, and whether a user cancelled the job.

        Newer versions list flags in addition to the state. A flag shows how a run ended. A job that waits
        after a requeue also has such a flag.
        """
        current = mapping_of(self._job, "state").get("current")
        words = [current] if isinstance(current, str) else current if isinstance(current, list) else []
        words = [word for word in words if isinstance(word, str) and word]
        if not words:
            self._fault("state.current", "is missing")
            return "", False
        flags = [word for word in words if word in (REQUEUED, RESIZING)]
        plain = (flags if ended and flags else []) or [word for word in words if word not in _FLAGS] or words
        by = self._job.get("kill_request_user")
        return plain[0].split(" ")[0], bool(by) or "kill_request_user" not in self._job

    def _tres(self, name: str) -> Tres:
        counts: dict[str, int] = {}
        listed = mapping_of(self._job, "tres").get(name)
        for item in listed if isinstance(listed, list) else []:
            if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
                self._fault(f"tres.{name}", "has an entry that is not a resource")
                continue
            kind = f"{item['type']}/{item['name']}" if item.get("name") else item["type"]
            if item["type"] not in _COUNTED:  # Slurm writes numbers like 2^64 - 2 for unknown energy
                continue
            count = self._number(item, "count")
            if count is not None:
                counts[kind] = count * MIB if kind == "mem" else count
        if any(count > INT64_MAX // 2 for count in counts.values()):
            self._fault(f"tres.{name}", "is more memory than 64 bits can count")
        return tres_of_counts(counts)

    def _time(self, times: Mapping[str, Any], name: str) -> int | None:
        seconds = self._number(times, name)
        return seconds * SECOND if seconds else None

    def _number(self, holder: Mapping[str, Any], name: str) -> int | None:
        """Returns an integer, plain or in an object with the key `set`, or None if it is not set."""
        value = holder.get(name)
        if isinstance(value, Mapping):
            if not value.get("set") or value.get("infinite"):
                return None
            value = value.get("number")
        if value is None:
            return None
        if type(value) is not int or not 0 <= value <= _MOST:
            self._fault(name, f"{shown(str(value))} is not a whole number from 0 to {_MOST:,}")
            return None
        return value

    def _text(self, name: str) -> str:
        value = self._job.get(name)
        return value.strip() if isinstance(value, str) else ""

    def _fault(self, name: str, what: str) -> None:
        number = self._job.get("job_id")
        named = f" (job {shown(str(number))})" if number is not None else ""
        self._faults.append(Fault(f"{self._place}{named}, {name}", what))
