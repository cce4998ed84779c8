"""Advises on samples of Prometheus in the forms of other programs, which this reader does not read."""

from __future__ import annotations

import re
from pathlib import Path

from harness.readers.source import first_bytes

_HEAD = 4096
_GRAFANA = re.compile(rb'\s*\{\s*"results"\s*:.*"(?:frames|refId)"', re.DOTALL)
_VICTORIA = re.compile(rb'\s*\{\s*"metric"\s*:\s*\{[^}]*\}\s*,\s*"(?:values|timestamps)"')
_RAW = "/api/v1/query for METRIC[1h], as docs/sources-live.md shows"


def advise(path: Path) -> str | None:
    """Returns advice on an answer of Grafana or an export of VictoriaMetrics, or None for any other file."""
    head = b"" if path.is_dir() else first_bytes(path, _HEAD)
    if _GRAFANA.match(head):
        return (
            "this looks like an answer of Grafana's /api/ds/query. Ask Grafana for "
            f"/api/datasources/proxy/uid/UID{_RAW}"
        )
    if _VICTORIA.match(head):
        return f"this looks like an export of VictoriaMetrics. Ask its {_RAW}"
    return None
