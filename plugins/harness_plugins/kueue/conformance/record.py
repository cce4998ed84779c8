"""Converts the events of a replay to the format of the recorded results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from harness.base.units import SECOND
from harness.testing.engine import ADMIT, EVICT, FINISH, MARK, PREEMPT, REPLACE, UNMARK, Fact
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.rules.second_pass import NODE_FAILURES
from harness_plugins.kueue.rules.wait_for_pods_ready import DEACTIVATED

_MILLISECOND = 1000


@final
class Record:
    """Collects the events that the engine reports, in the format of the expected results."""

    def __init__(self, policy: KueuePolicy, *, counting: bool) -> None:
        self._policy = policy
        self._counting = counting
        self._decisions: list[dict[str, Any]] = []
        self._number = dict.fromkeys((ADMIT, PREEMPT, FINISH), 0)
        self._makespan = 0
        self._held: dict[str, bool] = {}
        self._deactivated: set[str] = set()

    def record(self, fact: Fact) -> None:
        """Records admissions, preemptions, evictions and completions. Other events are ignored."""
        action, job = fact.action, fact.job
        if action in self._number:
            self._number[action] += 1
        if self._counting:
            if action == FINISH:
                self._makespan = fact.time
            return
        entry: dict[str, Any] = {"t": _seconds(fact.time), "cycle": self._policy.scheduler.cycles}
        if action == ADMIT:
            assert fact.detail is not None
            entry |= {
                "admit": job.id,
                "flavors": fact.flavors or {},
                "borrowing": fact.detail["borrowing"] > 0,
            }
            entry |= {name: fact.detail[name] for name in ("counts", "topology") if name in fact.detail}
        elif action == PREEMPT:
            assert fact.by is not None
            entry |= {"preempt": job.id, "by": fact.by.id, "reason": fact.reason}
        elif action in (MARK, UNMARK):
            word = "unhealthy" if action == MARK else "healthy"
            self._decisions.append({"t": entry["t"], word: job.id, "node": fact.node})
            return
        elif action == REPLACE:
            assert fact.detail is not None
            entry |= {"replace": job.id, "unhealthy": [fact.node]}
            entry |= {name: fact.detail[name] for name in ("counts", "topology") if name in fact.detail}
            self._decisions.append(entry)
            return
        elif action == EVICT:
            cycle = {} if self._by_controller(fact) else {"cycle": entry["cycle"]}
            entry = {"t": entry["t"], **cycle, "evict": job.id, "reason": fact.reason}
            if fact.reason == DEACTIVATED:
                self._deactivated.add(job.id)
            elif fact.detail is not None and fact.reason != NODE_FAILURES:
                entry |= {name: fact.detail[name] for name in ("cause", "count", "requeueAt")}
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

    @staticmethod
    def _by_controller(fact: Fact) -> bool:
        """Returns True if a controller evicted the workload. If only one node was lost, a cycle did."""
        return fact.reason != NODE_FAILURES or fact.detail is None or len(fact.detail["failed"]) > 1

    def share(self, *_: Any) -> None:
        """Does nothing, because the recorded results contain no shares. See `Recorder.share`."""

    def stint(self, *_: Any) -> None:
        """Does nothing, because the recorded results contain no run intervals. See `Recorder.stint`."""

    def job(self, *_: Any) -> None:
        """Does nothing, because the recorded results contain no job states. See `Recorder.job`."""

    def answer(self, *, deactivating: bool) -> Mapping[str, Any]:
        """Returns the result for a whole trace."""
        waiting = (name for name, held in self._held.items() if not held)
        final = {
            "admitted": sorted(name for name, held in self._held.items() if held),
            "pending": sorted(name for name in waiting if name not in self._deactivated),
        }
        if deactivating:
            final["deactivated"] = sorted(self._deactivated)
        return {"decisions": self._decisions, "final": final, "cycles": self._policy.scheduler.cycles}

    def counts(self, workloads: int) -> Mapping[str, Any]:
        """Returns the counts of events of each kind, the makespan, and the counts of cycles and heads."""
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
