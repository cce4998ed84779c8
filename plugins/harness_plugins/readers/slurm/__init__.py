"""Reads the output of Slurm's accounting, from `sacct -P` with common columns or from `sacct --json`.

The reader follows the rules of Slurm's database. A row is one run of a job, of a task of an array, or of a
component of a heterogeneous job. A requeue adds a new row with a new `Submit`. Steps are parts of jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from harness import Reading
from harness.base.errors import Fault, OptionError, TraceError
from harness.models.manifests import read_qos
from harness.readers.source import also_read, contents
from harness_plugins.readers.slurm.cells import COMMAND
from harness_plugins.readers.slurm.chains import chains_of, cut_to_window
from harness_plugins.readers.slurm.document import read_document
from harness_plugins.readers.slurm.hidden import overwritten
from harness_plugins.readers.slurm.jobs import Job, jobs_of
from harness_plugins.readers.slurm.notes import notes_of
from harness_plugins.readers.slurm.record import Clock, Dump, Record
from harness_plugins.readers.slurm.table import frame_of
from harness_plugins.readers.slurm.text import read_text

_SOURCE = "accounting of Slurm, printed by sacct"
_CUT = "with a start or an end that sacct -T made up: run sacct without -T"
_REPEATED = "rows that repeat another row, as in dumps of overlapping periods"


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads a dump. A requeued job becomes one job, and components of a heterogeneous job become pod sets.

    Raises:
        TraceError: the file is not a dump, columns are missing, or rows are malformed. The error lists all
            faults.
        ClusterError: the list of QOS cannot be read or is malformed.
        OptionError: the time zone is unknown.
    """
    clock = Clock(_zone(options["timezone"]))
    dump = _dump(path, clock)
    metadata = {"harness.source": _SOURCE}
    priorities = None
    if options["qos"]:
        listed = Path(options["qos"])
        priorities = {qos.name: qos.priority for qos in read_qos(listed)}
        metadata |= also_read(listed)
    left_out = Counter(dump.left_out)
    records = _without_cut(dump.records, left_out)
    chains, repeated = chains_of(records)
    left_out[_REPEATED] = repeated
    jobs = jobs_of(chains, options, left_out)
    counts = {reason: count for reason, count in left_out.items() if count}
    if not jobs:
        listed_counts = "; ".join(f"{count:,} {reason}" for reason, count in counts.items())
        raise TraceError(str(path), [Fault("", f"holds no job that has ended ({listed_counts})")], hint=_HINT)
    late = overwritten(records)

    def lost(job: Job) -> bool:
        known = (job.chain.last.cluster, job.chain.identity.number)
        return known in late or job.chain.backed_off

    def restarts(job: Job) -> int | None:
        said = job.chain.last.restarts
        known = len(job.chain.runs) - 1
        if said is not None:
            return max(said, known)
        return None if lost(job) and not known else known

    frame = frame_of(jobs, options, priorities, restarts)
    notes = notes_of(jobs, dump, clock, options, priorities, lost)
    return Reading(frame, dump.read, counts, notes, metadata)


_HINT = f"request a period with jobs that have ended: {COMMAND}"


def _dump(path: Path, clock: Clock) -> Dump:
    if contents(path).lstrip().startswith(b"{"):
        return read_document(path)
    return read_text(path, clock)


def _without_cut(records: list[Record], left_out: Counter[str]) -> list[Record]:
    cut = cut_to_window(records)
    left_out[_CUT] = len(cut)
    return [record for place, record in enumerate(records) if place not in cut]


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise OptionError(
            f"option timezone: {name!r} is not a known time zone", hint="such as Europe/Berlin or UTC"
        ) from error
