"""Checks whether a cluster is far too big or too small for a trace."""

from __future__ import annotations

from collections.abc import Iterator

from harness.base.units import short_amount
from harness.trace.level import held_at_once, level_of
from harness.trace.lint.finding import Finding, Material, counted, percent
from harness.trace.recorded import runs_of
from harness.trace.schema import REQUEST

_CALIBRATE = "harness trace calibrate --target-load 0.9 computes a scale for the cluster or the arrivals"


def check(material: Material) -> Iterator[Finding]:
    """Finds a cluster that is always large enough, a queue that only grows, and jobs that can never run."""
    jobs = material.jobs
    recorded = runs_of(material.trace, jobs)
    enough: list[str] = []
    known = {name: amount for name, amount in sorted(material.capacity.items()) if name in material.resources}
    for resource, there in known.items():
        level = level_of(jobs, resource)
        most = max(level.peak, held_at_once(recorded, resource) or 0)
        has = f"{short_amount(resource, there)} of {resource}"
        if most <= there:
            share = f", {percent(most / there)}" if there else ""
            mean = short_amount(resource, level.mean)
            enough.append(f"{short_amount(resource, most)} of {has} ({mean} on average{share})")
        elif level.mean > there:
            yield Finding(
                "cluster-too-small",
                f"jobs request on average {short_amount(resource, level.mean)} of {has} "
                f"({100 * level.mean / max(there, 1):.0f} %): the queue grows until the last submission, and "
                "every wait depends on the length of the trace",
                _CALIBRATE,
            )
        large = int((jobs[f"{REQUEST}{resource}"] > there).sum())
        if large and not material.impossible:
            yield Finding(
                "job-too-large",
                f"{counted(large, jobs.height)} request more than the {has}",
                "a replay refuses these jobs on that cluster: give a larger cluster, or leave the jobs out "
                "with --drop-impossible",
            )
    for sentence in material.impossible:
        yield Finding(
            "impossible",
            sentence,
            "a replay rejects these jobs: give them quota, flavors or nodes, or leave them out with "
            "--drop-impossible",
        )
    if known and len(enough) == len(known):
        yield Finding(
            "cluster-too-big",
            f"all jobs together never need more than {'; '.join(enough)}: jobs wait only for quota of "
            f"their queue, or for free capacity on a single node",
            f"{_CALIBRATE}; at the present scale, you can compare only packing and the limits of queues",
        )
