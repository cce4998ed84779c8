"""Finds facts that a dump lacks but its job numbers reveal: missing jobs and overwritten submissions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness_plugins.readers.slurm.record import Record


def missing_numbers(records: Iterable[Record]) -> int:
    """Counts the job numbers that are in no row, from the first to the last number of each cluster.

    Every job, every task that was split off, and every component of a heterogeneous job uses a number.
    """
    seen: dict[str, set[int]] = {}
    for record in records:
        if record.identity.number:
            seen.setdefault(record.cluster, set()).add(int(record.identity.number))
    return sum(max(numbers) - min(numbers) + 1 - len(numbers) for numbers in seen.values())


def missing_tasks(records: Iterable[Record]) -> tuple[int, int]:
    """Returns how many arrays have gaps in their task numbers, and how many task numbers are missing."""
    arrays: dict[tuple[str, str], set[int]] = {}
    for record in records:
        identity = record.identity
        if identity.task is not None:
            arrays.setdefault((record.cluster, identity.base), set()).add(identity.task)
    gaps = [max(tasks) - min(tasks) + 1 - len(tasks) for tasks in arrays.values()]
    return sum(gap > 0 for gap in gaps), sum(gaps)


def overwritten(records: Sequence[Record]) -> set[tuple[str, str]]:
    """Returns the cluster and the number of each job whose rows do not show its first submission.

    Slurm assigns numbers in the order of submission, except for tasks of arrays that are split off later. If
    a job was submitted after a job with a larger number, it was therefore requeued or resized. However, if
    the latest jobs have the smallest numbers, the numbering started again.
    """
    first: dict[str, dict[int, int]] = {}
    for record in records:
        identity = record.identity
        if identity.number and record.submit is not None:
            submits = first.setdefault(record.cluster, {})
            number = int(identity.number)
            submits[number] = min(record.submit, submits.get(number, record.submit))
    own = {
        (record.cluster, int(record.identity.number))
        for record in records
        if record.identity.number
        and (record.identity.task is None or record.identity.number == record.identity.base)
    }
    found: set[tuple[str, str]] = set()
    for cluster, submits in first.items():
        late: list[int] = []
        earliest: int | None = None
        for number in sorted(submits, reverse=True):
            if earliest is not None and submits[number] > earliest:
                late.append(number)
            elif (cluster, number) in own:
                earliest = submits[number]
        found |= {(cluster, str(number)) for number in _without_new_beginning(late, submits)}
    return found


def _without_new_beginning(late: Sequence[int], submits: dict[int, int]) -> list[int]:
    """Removes late numbers that occur because the numbering started again."""
    flagged = set(late)
    prefix: list[int] = []
    for number in sorted(submits):
        if number not in flagged:
            break
        prefix.append(number)
    others = [submits[number] for number in submits if number not in set(prefix)]
    anew = prefix and others and min(submits[number] for number in prefix) > max(others)
    return [number for number in late if number not in prefix] if anew else list(late)
