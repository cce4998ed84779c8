"""Keeps what happens in a replay in the form of the recorded answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from harness.engine.events import ADMIT, FINISH, PREEMPT
from harness.job import Job
from harness.units import SECOND
from harness_plugins.kueue.policy import KueuePolicy

_MILLISECOND = 1000


@final
class Record:
    """Keeps what the engine reports in the form of the expected answers.

    Args:
        policy: counts cycles and heads.
        counting: only numbers are asked for.
    """

    def __init__(self, policy: KueuePolicy, *, counting: bool) -> None:
        self._policy = policy
        self._counting = counting
        self._decisions: list[dict[str, Any]] = []
        self._number = dict.fromkeys((ADMIT, PREEMPT, FINISH), 0)
        self._makespan = 0
        self._held: dict[str, bool] = {}

    def decision(
        self,
        time: int,
        cycle: int,
        action: int,
        job: Job,
        pods: int,
        *_: Any,
        by: Job | None = None,
        reason: str | None = None,
        flavors: Mapping[str, Mapping[str, str]] | None = None,
        detail: Mapping[str, Any] | None = None,
        **__: Any,
    ) -> None:
        """Keep admissions, preemptions and ends."""
        if action in self._number:
            self._number[action] += 1
        if self._counting:
            if action == FINISH:
                self._makespan = time
            return
        entry: dict[str, Any] = {"t": _seconds(time), "cycle": self._policy.scheduler.cycles}
        if action == ADMIT:
            assert detail is not None
            entry |= {"admit": job.id, "flavors": flavors or {}, "borrowing": detail["borrowing"] > 0}
            if "counts" in detail:
                entry["counts"] = detail["counts"]
        elif action == PREEMPT:
            assert by is not None
            entry |= {"preempt": job.id, "by": by.id, "reason": reason}
        elif action == FINISH:
            entry = {"t": entry["t"], "finish": job.id}
            self._held.pop(job.id)
            self._decisions.append(entry)
            return
        else:
            self._held.setdefault(job.id, False)
            return
        self._held[job.id] = action == ADMIT
        self._decisions.append(entry)

    def share(self, *_: Any) -> None:
        """Shares are not compared."""

    def stint(self, *_: Any) -> None:
        """Not asked for."""

    def job(self, *_: Any) -> None:
        """Not asked for."""

    def answer(self) -> Mapping[str, Any]:
        """The answer of a whole trace."""
        return {
            "decisions": self._decisions,
            "final": {
                "admitted": sorted(name for name, held in self._held.items() if held),
                "pending": sorted(name for name, held in self._held.items() if not held),
            },
            "cycles": self._policy.scheduler.cycles,
        }

    def counts(self, workloads: int) -> Mapping[str, Any]:
        """The answer of a performance set-up."""
        return {
            "counts": {
                "workloads": workloads,
                "admissions": self._number[ADMIT],
                "preemptions": self._number[PREEMPT],
                "finished": self._number[FINISH],
                "makespanMs": self._makespan // _MILLISECOND,
                "cycles": self._policy.scheduler.cycles,
                "heads": self._policy.scheduler.heads,
            }
        }


def _seconds(time: int) -> int | float:
    return time // SECOND if time % SECOND == 0 else time / SECOND
