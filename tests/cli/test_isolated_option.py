"""`--isolated`: each quota alone too, replayed once, and a line that says how many are worse off together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from small_clusters import queues


def test_who_is_worse_off_together_is_told(harness: Callable, write_trace: Callable[..., Path]) -> None:
    """Asked again nothing is replayed; twins are not measured so."""
    jobs = ({"queue": "ab"[number % 2], "submit_time": number, "request.cpu": 2000} for number in range(6))
    trace = write_trace(*jobs)
    (trace.parent / "trace.cluster.yaml").write_text(queues({"a": {"cpu": "2"}, "b": {"cpu": "2"}}))
    first = harness("replay", trace, "-p", "none", "-p", "kueue-classic", "--isolated")
    assert first.code == 0
    assert "isolated: 4 runs of one quota alone; what is kept is not replayed again" in first.err
    (line,) = (line for line in first.out.split("\n") if line.startswith("fairness.sharing_violations"))
    assert line.split()[1:4] == ["0.0", "%", "0.0"]
    again = harness("replay", trace, "-p", "none", "-p", "kueue-classic", "--isolated")
    assert again.out == first.out
    refused = harness("replay", trace, "--isolated", "--shake", "2")
    assert refused.code == 2
    assert "--isolated does not go with --shake" in refused.err
