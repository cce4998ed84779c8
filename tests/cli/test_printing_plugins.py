"""What a plugin prints never mixes with the results of a command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.plugins.loading import installed_kinds

LOUD = """
    print("LOUD import")
    import harness
    import polars as pl
    from harness.analysis.report import SectionSpec, Table
    from harness.models import manifests

    class Loud:
        def __init__(self, cluster, view, options):
            print("LOUD policy")
            self.waiting = []
        def submit(self, job, pods, now): self.waiting.append(job)
        def release(self, job, pods, now, why): pass
        def cycle(self, now):
            yield from map(harness.Admit, self.waiting)
            self.waiting = []

    def read(path, options):
        print("LOUD reader")
        times = pl.Series([0, 1_000_000, 2_000_000], dtype=pl.Duration("us"))
        columns = {"job_id": ["a", "b", "c"], "submit_time": times, "duration": times, "queue": ["q"] * 3}
        return harness.Reading(pl.DataFrame(columns | {"request.cpu": [1, 1, 1]}), 3)

    def section(material):
        print("LOUD section")
        yield Table(caption="a", head=["a"], rows=[["b"]])

    def kind(fields, draft):
        print("LOUD kind")
        manifests.read_metadata(fields)

    @harness.hookimpl
    def harness_register_policies(register):
        print("LOUD hook")
        register(harness.PolicySpec("loud", Loud, help="starts all"))

    @harness.hookimpl
    def harness_register_readers(register):
        register(harness.ReaderSpec("loud", read, "three jobs", suffixes=(".loud",)))

    @harness.hookimpl
    def harness_register_sections(register):
        register(SectionSpec("loud", section, title="Loud", help="one cell", place=640))

    @harness.hookimpl
    def harness_register_kinds(register):
        known = manifests.Coverage(manifests.metadata(), manifests.STATUS)
        register(manifests.KindSpec("Loud.example.org", manifests.Kind(("v1",), kind, known)))
"""

MANIFESTS = """\
apiVersion: example.org/v1
kind: Loud
metadata: {name: a}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 8}}
"""


@pytest.fixture
def loud(install: Callable, folder: Path) -> Iterator[Path]:
    """The site of the plugin, beside a trace, a cluster and a patch for it."""
    (folder / "t.loud").write_text("three jobs")
    (folder / "c.yaml").write_text(MANIFESTS)
    (folder / "p.yaml").write_text("kind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 9}}\n")
    installed_kinds.cache_clear()  # a process of tests has had others, and will have
    yield install("loud", LOUD)
    installed_kinds.cache_clear()


SWEEP = ("sweep", "run", "t.loud", "-p", "loud", "--vary", "sample=0.5,0.9", "--item", "1")

COMMANDS = [
    (("trace", "info", "t.loud", "--json"), "reader", True),
    (("trace", "check", "t.loud", "--json", "--cluster", "c.yaml"), "kind", True),
    (("trace", "lint", "t.loud", "--json", "--cluster", "c.yaml"), "kind", True),
    (("trace", "convert", "t.loud", "t.parquet"), "reader", False),
    (("trace", "calibrate", "t.loud", "--target-load", "0.5", "--json"), "reader", True),
    (("cluster", "check", "c.yaml", "--json"), "kind", True),
    (("cluster", "patch", "c.yaml", "p.yaml"), "kind", False),
    (("plugins", "--json"), "import", True),
    (("replay", "t.loud", "-p", "loud", "--json"), "policy", True),
    (SWEEP, "policy", False),
    ((*SWEEP[:1], *SWEEP[2:-2], "--workers", "1"), "policy", False),
    (("sweep", *SWEEP[2:-2], "--dry-run"), "policy", False),
    (("simulate", "--trace", "t.loud", "--at", "1s", "--json", "-p", "loud"), "policy", True),
    (("--help",), "import", False),
]


@pytest.mark.parametrize(
    ("words", "source", "document"),
    COMMANDS,
    ids=lambda each: " ".join(each)[:24] if isinstance(each, tuple) else "",
)
def test_what_a_plugin_prints_goes_to_stderr(
    harness: Callable, loud: Path, words: tuple[str, ...], source: str, document: bool
) -> None:
    """This holds when it is loaded, when it reads a file, and when it decides."""
    ended = harness(*words)
    assert ended.code in (0, 3), ended.err
    assert "LOUD" not in ended.out
    assert f"LOUD {source}" in ended.err
    if document:
        json.loads(ended.out)


def test_what_a_plugin_prints_for_a_run_goes_to_stderr(harness: Callable, loud: Path, folder: Path) -> None:
    """Sections of reports, and readers that read the trace of a run again, are plugins, too."""
    assert harness("replay", "t.loud", "-p", "loud").code == 0
    (run,) = folder.glob("results/t/loud-*")
    report = harness("report", run, "--format", "markdown")
    assert report.out.startswith("#")
    assert "LOUD" not in report.out
    assert "LOUD section" in report.err
    written = harness("trace", "from-run", run, "recorded.parquet")
    assert written.out.startswith("3 rows written")
    assert "LOUD reader" in written.err
    judged = harness("validate", "recorded.parquet", "-p", "loud", "--json")
    json.loads(judged.out)
    assert "LOUD policy" in judged.err


def test_what_a_plugin_prints_is_no_part_of_an_answer_to_an_assistant(
    shell: Callable, loud: Path, folder: Path
) -> None:
    """The process that answers writes one JSON document."""
    arguments = {"cluster": "c.yaml", "plugin": "none"}
    question = {"memory": 2 << 30, "folders": [str(folder)], "tool": "simulate", "arguments": arguments}
    (folder / "q.json").write_text(json.dumps(question))
    ended = shell("python -m harness.cli.tool_server.worker < q.json", PYTHONPATH=str(loud))
    assert "text" in json.loads(ended.out), ended.out
    assert "LOUD kind" in ended.err
