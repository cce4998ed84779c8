"""Traits of a job that predict its run time, such as its user, queue, size and name."""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.cluster.model import Cluster
from harness.policy import Job

_PARTS = re.compile(r"([-._/])")
_GENERATED = re.compile(r"(?=.*[bcdfghjklmnpqrstvwxz])[bcdfghjklmnpqrstvwxz2456789]{5}|[0-9a-f]{6,}")
"""The suffixes that Kubernetes and Kueue append to names: five characters without vowels, or a checksum."""


class Traits(NamedTuple):
    """The traits of a job. Unknown traits are ""."""

    user: str
    queue: str
    size: str
    stem: str
    limit: str = ""


LIMITED: tuple[tuple[str, ...], ...] = (
    ("user", "queue", "size", "stem", "limit"),
    ("queue", "size", "stem", "limit"),
    ("user", "queue", "size", "limit"),
    ("user", "queue", "limit"),
)
"""Groups of jobs with the same run-time limit. They are the narrowest groups, because the limit predicts
best."""

GROUPS: tuple[tuple[str, ...], ...] = (
    ("user", "queue", "size", "stem"),
    ("queue", "size", "stem"),
    ("user", "queue", "size"),
    ("user", "queue"),
    ("queue", "size"),
    ("queue",),
    ("size",),
    (),
)
"""The traits that the jobs of a group have in common, from the narrowest group to the group of all jobs."""

LEVELS = tuple(enumerate((*LIMITED, *GROUPS), -len(LIMITED)))
"""All groups with their numbers, which affect draws.

Groups with a limit have negative numbers, so that they do not affect the draws for jobs without a limit.
"""


def key_of_group(traits: Traits, group: tuple[str, ...]) -> tuple[str, ...] | None:
    """Returns a job's values for the traits of a group, or None if one of them is unknown."""
    key = tuple(getattr(traits, name) for name in group)
    return key if all(key) else None


def traits_of(job: Job, cluster: Cluster) -> Traits:
    """Returns the traits of a job. If its queue is a LocalQueue, the trait is the ClusterQueue behind it."""
    queue = cluster.cluster_queue_of(job.namespace, job.queue)
    name = job.queue if queue is None else queue.name
    return Traits(job.user, name, size_of(job), stem_of(job.id), limit_of(job.requested))


def limit_of(limit: int | None) -> str:
    """Returns the run-time limit of a job as text, or "" without a limit.

    The limit can serve as a trait, because people request only a few different limits.
    """
    return "" if limit is None else str(limit)


def size_of(job: Job) -> str:
    """Returns the size class of a job, which is its GPUs, or else its cores, rounded up to a power of two."""
    amounts = {name: amount for name, amount in job.requests_of(range(job.pods)).items() if amount}
    gpus = sorted(name for name in amounts if "gpu" in name)
    name = gpus[0] if gpus else "cpu" if "cpu" in amounts else min(amounts, default="")
    if not name:
        return ""
    amount = amounts[name]
    if name == "cpu" or name.endswith("-milli"):
        amount = -(-amount // 1000)
    return f"{name} {1 << (amount - 1).bit_length()}"


def stem_of(name: str) -> str:
    """Returns the part of a job's name that recurs across submissions, without numbers or generated parts."""
    parts = _PARTS.split(name.rpartition("/")[2].lower())
    while parts:
        last = parts[-1].rstrip("0123456789")
        if last and not _GENERATED.fullmatch(parts[-1]) and not _PARTS.fullmatch(last):
            return "".join([*parts[:-1], last])
        parts.pop()
    return ""
