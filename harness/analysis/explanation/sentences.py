"""Describes recorded events in sentences, in the same way for all policies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.analysis.explanation.history import Event, Other
from harness.analysis.explanation.vocabulary import Figures, Table, Units, share_of
from harness.base.text import counted, first_of
from harness.base.units import HOUR, format_duration, unit_of
from harness.cluster.kinds.preemption_strategies import strategies_of
from harness.policy import LOST_WITH_NODE

_NAMED = 3


class Sentences:
    """Writes sentences about a job."""

    def __init__(
        self, units: Units, queue: str, priority: int, pods: int, time: Callable[[int], str]
    ) -> None:
        self._units = units
        self._pods = pods
        self._time = time
        self._queue = queue
        self._priority = priority

    def about(self, event: Event) -> str:
        """Returns the sentence about an event."""
        match event.what:
            case "submit":
                return f"submitted to queue {self._queue}: {pods(event.pods)}, priority {self._priority}"
            case "admit":
                return self._admitted(event)
            case "start":
                return f"{pods(event.pods)} started, because the resources for the job are free"
            case "bind":
                return f"{pods(event.pods)} bound to {_nodes(event.nodes)}{_together(event.figures)}"
            case "nominate":
                freed = "is" if len(event.nodes) == 1 else "are"
                text = f"{_nodes(event.nodes)} {freed} being freed for {pods(event.pods)}"
                return f"{text}{_once_gone(event.figures)}"
            case "unnominate":
                return f"the nomination of a node for {pods(event.pods)} is withdrawn"
            case "preempt" | "evict":
                return self._evicted(event)
            case "gone":
                return f"{pods(event.pods)} gone; the resources are free"
            case "requeue":
                return f"{pods(event.pods)} gone and back in the queue" if event.pods else "back in the queue"
            case "finish":
                return f"{pods(event.pods)} finished"
            case "reject":
                return f"rejected for good: {event.reason}"
            case "refuse":
                return self.refused(event)
            case "mark":
                return f"node {_nodes(event.nodes)} failed: its pods need other nodes"
            case "unmark":
                return f"node {_nodes(event.nodes)} did not fail after all"
            case "replace":
                return f"node {_nodes(event.nodes)} failed; replaced by {_nodes(event.figures.replaced_by)}"
            case _:
                return self._preempting(event)

    def refused(self, event: Event) -> str:
        """Explains why a job waits."""
        figures = event.figures
        parts = [f"waits{' again' if figures.again else ''}{_because(event)}"]
        parts += self._in_the_way(figures)
        if event.as_at is not None:
            parts += self._holders(event)
            parts.append(f"as of {self._time(event.as_at)}")
        if figures.short:
            missing = ", ".join(self._units.named(*each) for each in figures.short.items())
            known = {label: figures.request[label] for label in figures.short if label in figures.request}
            asked = f", requesting {self._listed(known)}" if known else ""
            parts.append(f"short of {missing}{asked}")
        elif figures.request and not figures.nodes:
            parts.append(f"it requests {self._listed(figures.request)}")
        if figures.nominated:
            ahead = {label: each for label, each in figures.nominated.items() if label in figures.short}
            parts.append(f"pods nominated before it take {self._listed(ahead or figures.nominated)}")
        if figures.message:
            parts.append(figures.message)
        parts += self._states(figures, list(figures.short or figures.request))
        if figures.nodes:
            parts.append(self._nodes_say(figures))
        if figures.preemption:
            parts.append(f"preemption: {figures.preemption.rstrip('.')}{self._governed(figures)}")
        if figures.candidate:
            parts.append(self._forbidden(figures))
        if figures.not_freed:
            parts.append(
                "; ".join(f"{counted(count, 'node')}: {why}" for why, count in figures.not_freed.items())
            )
        return "; ".join([*parts, *(self._holders(event) if event.as_at is None else ())])

    def _holders(self, event: Event) -> Iterator[str]:
        for label, holders in event.holders.items():
            held = ", ".join(f"{queue} {self._units.amount(label, amount)}" for queue, amount in holders)
            yield f"most {self._units.kind(label)} is held by {held}"

    def _in_the_way(self, figures: Figures) -> Iterator[str]:
        if figures.ahead:
            kept = [f"{self._listed(amounts)} for job {job}" for job, amounts in figures.ahead.items()]
            yield f"kept free for jobs ahead of it: {first_of(kept, _NAMED)}"
        if figures.waits_for:
            jobs = [f"job {job}{_for(by)}" for job, by in figures.waits_for.items()]
            yield f"it waits for {first_of(jobs, _NAMED)}"

    def _governed(self, figures: Figures) -> str:
        fields = ", ".join(f"{name} {value}" for name, value in figures.fields.items())
        queue, over = figures.queue, []
        for label in figures.borrows:
            used = figures.usage.get(queue, {}).get(label, 0) + figures.request.get(label, 0)
            would, own = self._units.alike(label, used, figures.quota.get(queue, {}).get(label, 0))
            kind = self._units.kind(label)
            over.append(f"{kind}: {queue} would use {would}, over its {own} {kind}")
        said = "; ".join([*over, fields] if fields else over)
        return f" ({said})" if said else ""

    def _forbidden(self, figures: Figures) -> str:
        (mine, (_, share)), (theirs, (initial, final)) = _sides(figures)
        said = [
            f"{strategy.refusal(share, initial, final, theirs)} ({strategy.name})"
            for strategy in strategies_of(figures.strategies)
        ]
        others = counted(figures.tried, "other candidate")
        tried = f", because {others} would not free enough" if figures.tried else ""
        return f"the next candidate is job {figures.candidate}{tried}: share of {mine} {' and '.join(said)}"

    def _admitted(self, event: Event) -> str:
        figures = event.figures
        text = "admitted"
        chosen = _flavors(event.flavors)
        if chosen:
            text += f" on {'flavor' if len(chosen) == 1 else 'flavors'} {', '.join(chosen)}"
        if figures.counts:
            fewer = ", ".join(f"{count} of {name}" for name, count in figures.counts.items())
            text += f" with fewer pods ({fewer})"
        if figures.lenders:
            lent = ", ".join(
                f"{self._units.kind(label)} from {cohort}" for label, cohort in figures.lenders.items()
            )
            text += f"; borrows {lent}"
        elif figures.borrowing:
            text += f"; borrows from the cohort at height {figures.borrowing}"
        text += self._shares(figures) + _local_queues(figures)
        if figures.checks:
            times = (f"{check} after {format_duration(time)}" for check, time in figures.checks.items())
            return f"{text}; it starts when its admission checks are ready ({', '.join(times)})"
        return f"{text}; it starts when the evicted jobs are gone" if event.waits else text

    def _evicted(self, event: Event) -> str:
        figures, lost = event.figures, event.reason == LOST_WITH_NODE
        if lost:
            node = "node" if len(event.nodes) == 1 else "nodes"
            text = f"{node} {_nodes(event.nodes)} failed{_because(event)}"
        elif not event.others:
            text = f"{'preempted' if event.what == 'preempt' else 'evicted'}{_because(event)}"
        else:
            text = f"preempted by {self._side(event.others[0])}{_because(event)}"
        if figures.round > 1:
            text += f", round {figures.round} without progress"
        if lost:
            text += f"; {_of_all(event.pods, self._pods)} there"
        else:
            text += f": {pods(event.pods)}" + (f" on {_nodes(event.nodes)}" if event.nodes else "")
        parts = [text, *self._rule(figures)]
        if figures.message and not event.others:
            parts.append(figures.message)
        if event.lost:
            hours = ", ".join(map(_hours, event.lost_amounts.items()))
            ran = format_duration(event.ran or 0)
            work = f"{format_duration(event.lost)} of work{summed(event.lost_pods)}"
            parts.append(f"it had run for {ran} and lost {work}" + (f" ({hours})" if hours else ""))
        elif event.ran:
            parts.append(f"it had run for {format_duration(event.ran)} and lost no work")
        elif event.ran is not None:
            parts.append("it had no work to lose")
        return "; ".join(parts)

    def _preempting(self, event: Event) -> str:
        victims = ", ".join(self._side(other, queue=False) for other in event.others[:_NAMED])
        if len(event.others) > _NAMED:
            victims += f" and {len(event.others) - _NAMED:,} more"
        text = f"it preempts {victims} of queue {event.others[0].queue}{_because(event)}"
        return "; ".join([text, *self._rule(event.figures, event.others)])

    def _rule(self, figures: Figures, victims: Sequence[Other] = ()) -> Iterator[str]:
        if figures.queue and figures.request:
            yield f"{figures.queue} requested {self._listed(figures.request)}"
        yield from self._states(figures, list(figures.request or figures.runtime.get(figures.queue, {})))
        if figures.taken:
            gave = ", ".join(
                f"{name} loses {self._listed(amounts)}" for name, amounts in figures.taken.items()
            )
            yield gave
        shares = self._shares(figures)
        if shares:
            yield shares.removeprefix("; ") + _own_shares(figures, victims)
        if figures.local_queues:
            yield _local_queues(figures).removeprefix("; ")
        if figures.criterion:
            among = f" among {figures.candidates:,} candidates" if figures.candidates > 1 else ""
            yield f"{figures.node or 'the node'} was chosen{among}, by this criterion: {figures.criterion}"
        if figures.pdb_violations:
            yield f"{figures.pdb_violations:,} evictions violate a disruption budget"

    def _states(self, figures: Figures, labels: Sequence[str]) -> Iterator[str]:
        for name in figures.usage:
            bounds = {"runtime": figures.runtime, "at most": figures.most}
            said = self._used(figures.usage[name], figures.quota, bounds, name, labels)
            if said:
                yield f"{name} used {said}"
        if figures.pool is not None:
            name, usage, quota, kept = figures.pool
            said = self._used(usage, {name: quota}, {}, name, labels)
            if said:
                yield f"all queues{f' of {name}' if name else ''} used {said}"
            kept = {label: kept[label] for label in labels if label in kept}
            if kept:
                yield f"lending limits keep another {self._listed(kept)} for individual queues"

    def _used(
        self,
        usage: Mapping[str, int],
        quota: Table,
        bounds: Mapping[str, Table],
        name: str,
        labels: Sequence[str],
    ) -> str:
        parts = []
        for label in labels:
            guaranteed = quota.get(name, {}).get(label)
            if label not in usage and guaranteed is None:
                continue
            used = usage.get(label, 0)
            text = self._units.named(label, used)
            if guaranteed is not None:
                text = f"{' of '.join(self._units.alike(label, used, guaranteed))} {self._units.kind(label)}"
            known = ((word, table.get(name, {}).get(label)) for word, table in bounds.items())
            listed = [f"{word} {self._units.named(label, each)}" for word, each in known if each is not None]
            if listed:
                text += f" ({', '.join(listed)})"
            parts.append(text)
        return ", ".join(parts)

    def _nodes_say(self, figures: Figures) -> str:
        parts = []
        for reason, count in figures.nodes.items():
            resource = reason.removeprefix("Insufficient ")
            text = f"{counted(count, 'node')}: {reason}"
            if resource in figures.most_free and resource in figures.request:
                asked = self._units.named(resource, figures.request[resource])
                free = self._units.named(resource, figures.most_free[resource])
                text += f" ({asked} requested, at most {free} free on a node)"
            parts.append(text)
        return ", ".join(parts)

    def _shares(self, figures: Figures) -> str:
        if not figures.shares:
            return ""
        pairs = (
            f"{name} {before}" if before == after else f"{name} {before} → {after}"
            for name, (before, after) in figures.shares.items()
        )
        return f"; share of {', '.join(pairs)}"

    def _side(self, other: Other, *, queue: bool = True) -> str:
        text = f"job {other.job}"
        if queue:
            text += f" of queue {other.queue}"
        if other.priority != self._priority:
            text += f" with priority {other.priority} over {self._priority}" if queue else (
                f" with priority {other.priority}")  # fmt: skip
        return text

    def _listed(self, amounts: Mapping[str, int]) -> str:
        return ", ".join(self._units.named(label, amount) for label, amount in amounts.items())


def _hours(lost: tuple[str, int]) -> str:
    """Returns a resource and an amount multiplied by time in words, such as `2.00 GiB-hours of memory`."""
    resource, amount = lost
    unit = unit_of(resource)
    kind = f"{resource}-hours" if unit.name != "GiB" else f"GiB-hours of {resource}"
    return f"{amount / (unit.size * HOUR):,.2f} {kind}"


def _because(event: Event) -> str:
    return f" ({event.reason})" if event.reason else ""


def pods(count: int) -> str:
    """Returns a number of pods with the word "pod" or "pods"."""
    return counted(count, "pod")


def summed(pods: int) -> str:
    """Returns a text that follows a time and says that the time is a sum over several pods."""
    return f", summed over {pods:,} pods" if pods > 1 else ""


def _together(figures: Figures) -> str:
    if figures.waiting:
        return f", {figures.gang} of its group together while {figures.waiting} more wait"
    return f", all {figures.gang} of its gang together" if figures.gang > 1 else ""


def _once_gone(figures: Figures) -> str:
    pods = [*figures.victims]
    return (
        f"; it waits until {first_of(pods, _NAMED)} {'is' if len(pods) == 1 else 'are'} gone" if pods else ""
    )


def _nodes(nodes: Mapping[str, int]) -> str:
    named = [name if len(nodes) == 1 else f"{name} ({count})" for name, count in nodes.items()]
    return first_of(named, _NAMED, "node")


def _of_all(some: int, total: int) -> str:
    if total == 1:
        return "its pod was"
    if some == total:
        return f"all {total:,} pods were"
    return f"{some:,} of its {total:,} pods {'was' if some == 1 else 'were'}"


def _for(preemptor: str) -> str:
    return f" (preempted for job {preemptor})" if preemptor else ""


def _sides(figures: Figures) -> list[tuple[str, tuple[str, str]]]:
    """Returns the shares of both sides of a preemption. The side with the growing share comes first."""
    return sorted(
        figures.shares.items(), key=lambda side: share_of(side[1][0]) < share_of(side[1][1]), reverse=True
    )


def _own_shares(figures: Figures, victims: Sequence[Other]) -> str:
    steps = [
        (share_of(before), f"{victim.job} {name} {before} → {after}")
        for victim in victims
        for name, (before, after) in victim.shares.items()
        if before != after
    ]
    steps.sort(key=lambda step: step[0], reverse=True)
    return f" ({first_of([text for _, text in steps], _NAMED)})" if len(steps) > 1 else ""


def _local_queues(figures: Figures) -> str:
    said = ", ".join(f"{name} {usage}" for name, usage in figures.local_queues.items())
    return f"; usage of LocalQueue {said}" if said else ""


def _flavors(text: str) -> list[str]:
    chosen = json.loads(text) if text else {}
    return list(dict.fromkeys(flavor for of_pod_set in chosen.values() for flavor in of_pod_set.values()))
