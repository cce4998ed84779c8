"""Advises on the output of other Slurm commands, which is often confused with that of `sacct`."""

from __future__ import annotations

from pathlib import Path

from harness.readers.source import contents
from harness_plugins.readers.slurm.cells import COMMAND

_JOBS = f"which has no history of jobs; run {COMMAND}"
_CLUSTER = "which describes a cluster, not jobs; harness cluster from-slurm reads it"
_BEGINNINGS = {
    "squeue": (("JOBID|", "JOBID "), _JOBS),
    "scontrol show job": (("JobId=",), _JOBS),
    "sinfo": (("PARTITION AVAIL", "NODELIST "), f"which has no jobs; run {COMMAND}"),
    "scontrol show nodes": (("NodeName=",), _CLUSTER),
    "sacctmgr show qos": (("Name|Priority|GraceTime",), _CLUSTER),
    "sacctmgr show assoc": (("Cluster|Account|User",), _CLUSTER),
}


def advise(path: Path) -> str | None:
    """Returns advice if another Slurm command printed the file, or None for any other file."""
    if path.is_dir():
        return None
    head = contents(path)[:200].decode("utf-8", "replace").lstrip()
    for command, (beginnings, what) in _BEGINNINGS.items():
        if head.startswith(beginnings):
            return f"this looks like the output of {command}, {what}"
    return None
