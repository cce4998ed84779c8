"""Tracks the progress of jobs and the cost of interruptions, in stints.

A stint is a time span in which pods hold resources and stay in one state.
"""

from __future__ import annotations

from harness.engine.events import NEVER, PROGRESS, RESTORING, STARTING, Recorder
from harness.engine.life import Hold, Life, Unit
from harness.engine.losses import Losses
from harness.engine.sources import FAR


class Progress:
    """Starts and stops units, and records the stints between each start and stop.

    Attributes:
        kept: the progress that survived evictions, in microseconds, summed over units.
    """

    def __init__(self, recorder: Recorder, losses: Losses) -> None:
        self._recorder = recorder
        self._losses = losses
        self.kept = 0

    def start(self, unit: Unit, now: int) -> None:
        """Start a unit when all its pods hold their resources. Progress begins when the pods are ready.

        If the unit has a checkpoint, it must be restored before progress begins. If the job was already
        running before its arrival, its pods are ready at once and continue. They end now if the whole run
        time has passed.
        """
        life = unit.life
        unit.began = ready = now
        if unit.done:
            unit.ready = now
            unit.done = min(unit.done, life.work)
        elif life.startup is not None:
            ready = unit.ready = now + life.startup[min(unit.starts, len(life.startup) - 1)]
            unit.starts += 1
        unit.since = ready + self._losses.restore if unit.kept else ready - unit.done
        unit.done = 0
        recorded = life.job.recorded
        # All recorded runs but the last end by eviction. The last run ends when the record says, not when the
        # work is done.
        unit.due = recorded[-1].end if recorded else unit.since + life.work - unit.kept
        if life.work >= FAR and not recorded:
            unit.due = FAR  # even if part of the work was done before the job arrived
        if life.started == NEVER and life.startup is None:
            life.started = unit.since if unit.since > now else now  # noqa: FURB136 see `stop`

    def stop(self, unit: Unit, now: int, evicted: bool = False) -> None:
        """Stop a unit. From now on, its pods hold their resources without making progress."""
        self.account(unit, now, evicted)
        unit.began = unit.since = unit.due = NEVER
        holds = unit.life.holds
        for hold in holds.values() if unit.pod == NEVER else (holds[unit.pod],):
            hold.since = now

    def never_began(self, unit: Unit, now: int) -> None:
        """Account for the eviction of a unit that ran before its job arrived, and has not started since.

        The loss model is applied to its progress as if the unit were running.
        """
        if not unit.done:
            return
        unit.kept = self._losses.kept(unit.done, unit.life.interval)
        lost, unit.done = unit.done - unit.kept, 0
        if lost:
            life, pod = unit.life, unit.pod if unit.life.job.pods > 1 else NEVER
            self._recorder.stint(life.job, unit.pods, unit.amounts, now, now, PROGRESS, 0, lost, pod)

    def account(self, unit: Unit, now: int, evicted: bool = False) -> None:
        """Record the stint that ends now. If an eviction ended it, the loss model reduces the progress."""
        life, began, since = unit.life, unit.began, unit.since
        if life.startup is not None:
            began = self._started_up(unit, now)
        if since > began and now > began:
            self.idle(life, unit.pods, unit, began, min(since, now), RESTORING)
        if now > since:
            lost = earlier = 0
            first = since if since > began else began  # noqa: FURB136 `max` takes 2 % of a short event
            if evicted:
                progress = unit.kept + now - since
                before, unit.kept = unit.kept, self._losses.kept(progress, life.interval)
                self.kept += max(0, unit.kept - before)
                # Progress before the arrival is lost as well, but it does not belong to any stint of this
                # replay.
                lost = min(progress - unit.kept, now - first)
                earlier = progress - unit.kept - lost if since < began else 0
                life.lost += lost * unit.pods
            if earlier or now > began:
                pods, pod = unit.pods, unit.pod if life.job.pods > 1 else NEVER
                self._recorder.stint(life.job, pods, unit.amounts, first, now, PROGRESS, lost, earlier, pod)

    def _started_up(self, unit: Unit, now: int) -> int:
        """Accounts for the start-up in a stint that ends now, and returns when the pods were ready."""
        life, ready, since = unit.life, unit.ready, unit.since
        self.idle(life, unit.pods, unit, unit.began, min(ready, now), STARTING)
        if since <= now and (life.started == NEVER or since < life.started):
            life.started = max(since, unit.began)
        unit.ready = NEVER
        return ready

    def held(self, life: Life, pod: int, hold: Hold, now: int, state: int) -> None:
        """Record that one pod held its resources until now in a state without progress."""
        if hold.since < now:
            life.idle += now - hold.since
            self._recorder.stint(life.job, 1, life.amounts_of(pod), hold.since, now, state, 0)
            hold.since = now

    def idle(self, life: Life, pods: int, unit: Unit, since: int, until: int, state: int) -> None:
        """Record that all pods of a unit held their resources in a state without progress."""
        if since < until:
            life.idle += (until - since) * pods
            self._recorder.stint(life.job, pods, unit.amounts, since, until, state, 0)
