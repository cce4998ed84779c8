"""Creates a history from the ended jobs in a cluster's manifests, which can come from several files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from harness.base.errors import Fault, TraceError
from harness.base.json_text import mapping_of
from harness.runs.inputs import read_trace

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins import Plugins
    from harness.trace.trace import Trace

READER = "kubernetes"
"""The reader for the objects in a cluster."""

_KINDS = ("Workload", "Job", "Pod")
_PLACE = re.compile(r"document 1\b.*?, item ([0-9]+) \(\w+\)")


def ended_jobs(cluster: Cluster, plugins: Plugins) -> Trace:
    """Returns the Workloads, Jobs and Pods that have ended.

    A Workload and its Job can come from two files, but the reader of manifests accepts only one. For this
    reason, the function first writes all objects to a temporary file.

    Raises:
        TraceError: no object has ended, or the objects are malformed.
    """
    source = cluster.source or "the cluster"
    objects = [each for each in cluster.manifests if each.get("kind") in _KINDS]
    if not objects:
        raise TraceError(source, [Fault("", f"contains no {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")])
    if READER not in plugins.readers.names():
        raise TraceError(source, [Fault("", f"the reader {READER!r}, which reads jobs, is not loaded")])
    with TemporaryDirectory(prefix="harness-") as folder:
        file = Path(folder, "objects.json")
        whole = {"apiVersion": "v1", "kind": "List", "items": objects}
        file.write_text(json.dumps(whole, default=_plain), encoding="utf-8")
        try:
            trace = read_trace(file, plugins, reader=READER)
        except TraceError as error:
            faults = [Fault(_named(fault.where, objects), fault.what) for fault in error.faults]
            raise TraceError(source, faults) from error
    return replace(trace, path=Path(source))


def _plain(value: Any) -> Any:
    """Converts a value that JSON does not support, which can be in manifests that were made in Python."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def _named(where: str, objects: Sequence[Mapping[str, Any]]) -> str:
    """Replace a location in the joined file by the object's name, which users can find in their files."""

    def name(found: re.Match[str]) -> str:
        item = objects[int(found[1]) - 1]
        named = mapping_of(item, "metadata")
        names = [str(named[part]) for part in ("namespace", "name") if named.get(part)]
        return f"{item['kind']} {'/'.join(names)}".rstrip()

    return _PLACE.sub(name, where)
