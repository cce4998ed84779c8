"""What pod templates of a trace ask for beyond the model is said before a replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from harness.cluster.model import Cluster
from harness.plugins import load
from harness.trace.trace import open_trace
from harness.trace.warnings import unreached


def test_what_a_pod_template_asks_for_beyond_the_model_is_named_with_its_rows(
    write_trace: Callable[..., Path],
) -> None:
    """With what is assumed; a misspelt field too, and nothing of fields that count or are harmless."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": 1}}}
    claims = {"containers": [container], "resourceClaims": [{"name": "gpu"}]}
    misspelt = {"metadata": {"labels": {"a": "b"}}, "spec": {"tolerationz": [], "hostNetwork": True}}
    wrong = {"spec": {"tolerationz": ["x"]}}
    templates = [claims, claims, misspelt, wrong, {"containers": [container]}, None]
    path = write_trace(*({"pod_template": each and json.dumps(each)} for each in templates))
    assert list(unreached(open_trace(path, load()), Cluster())) == [
        (
            "pod_template: resourceClaims is not modelled: harness allocates no devices to resource claims "
            "(2 rows, the first of job j0)"
        ),
        (
            "pod_template: tolerationz is not modelled: no such field is known; did you mean 'tolerations'? "
            "(2 rows, the first of job j2)"
        ),
    ]
