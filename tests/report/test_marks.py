"""Changes of the cluster in a report: marks below the chart of use, and a table of them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from doc_pages import ROOT
from report_runs import cut, write

import harness
from harness.analysis.report import Figure, Table, drawing
from harness.analysis.report.charts import events as chart
from harness.analysis.report.marks import marks_of
from harness.analysis.report.sections import allocation
from harness.base.units import HOUR, SECOND
from harness.cluster.load import cluster_from

Row = tuple[str, str, str, str, str, str]

EVENTS: Sequence[Row] = (
    ("1h", "2h", "Node", "n-0", "remove", ""),
    ("3h", "5h", "Node", "n-1", "cordon", ""),
    ("6h", "8h", "Node", "n-1", "drain", "timeout=10m"),
    ("9h", "11h", "Node", "n-2", "partition", ""),
    ("12h", "14h", "Node", "n-2", "taint", "broken=yes:NoExecute"),
    ("15h", "", "Node", "n-2", "resize", "cpu=1"),
    ("16h", "", "ClusterQueue", "q", "quota[cpu]", "6"),
    ("18h", "", "ClusterQueue", "q", "quota[cpu]", "5"),
    ("20h", "", "ClusterQueue", "q", "quota[cpu]", "8"),
)
"""An event of each kind; the last row gives the quota back that two others took."""


def replayed(folder: Path, rows: Sequence[Row], label: str = "run") -> harness.Run:
    """A job an hour for a day, on three nodes and a ClusterQueue that change."""
    cores = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 8}]}]
    spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": cores}]}
    template = {"allocatable": {"cpu": "4", "pods": "10"}}
    kueue = "kueue.x-k8s.io/v1beta2"
    objects = (
        ("harness/v1", "NodePool", "n", {"count": 3, "template": template}),
        (kueue, "ResourceFlavor", "f", {}),
        (kueue, "ClusterQueue", "q", spec),
    )
    manifests = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for version, kind, name, spec in objects
    ]
    columns = ("time", "until", "kind", "name", "field", "value")
    cluster = cluster_from(manifests, "world")
    if rows:
        cluster = cluster.patched([dict(zip(columns, row, strict=True)) for row in rows])
    jobs = [{"submit_time": 3600 * hour, "duration": 3600, "queue": "q"} for hour in range(25)]
    trace = write(folder / "trace.parquet", jobs)
    return harness.replay(
        trace, plugin="kueue-classic", cluster=cluster, label=label, output=folder / "results"
    )


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """A run with an event of each kind."""
    return replayed(tmp_path_factory.mktemp("changing"), EVENTS)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """A run with 200 failures, one every seven minutes."""
    rows = [
        (f"{7 * place}m", f"{7 * place + 5}m", "Node", f"n-{place % 3}", "remove", "")
        for place in range(1, 201)
    ]
    return replayed(tmp_path_factory.mktemp("failing"), rows)


@pytest.fixture(scope="module")
def failing_page(charts: None, failing: harness.Run) -> str:
    """Its page, of the chapter with the marks."""
    return cut(harness.make_report([failing]), "allocation").html()


def tables(*runs: harness.Run) -> list[Table]:
    """The tables of changes in a report."""
    chapters = harness.make_report(runs).chapters
    return [block for each in chapters for block in each.blocks if isinstance(block, Table) and block.prose]


def drawn(page: str, width: str) -> list[str]:
    """The texts of the marks in the drawings of one width."""
    parts = re.findall(rf'<div class="{width}">(.*?)</svg>', page, flags=re.DOTALL)
    return [html.unescape(each) for part in parts for each in re.findall("<title>(.*?)</title>", part)]


def test_each_kind_of_event_is_a_mark_from_its_beginning_to_its_end(changing: harness.Run) -> None:
    """A cordon with the taint that follows is one, and what gives back is none."""
    found = [(mark.sort, mark.name, mark.begin, mark.end) for mark in marks_of(changing)]
    late = 1 * SECOND
    assert found == [
        ("failures", "Node n-0", 1 * HOUR, 2 * HOUR),
        ("cordons", "Node n-1", 3 * HOUR, 5 * HOUR + late),
        ("drains", "Node n-1", 6 * HOUR, 8 * HOUR + late),
        ("partitions", "Node n-2", 9 * HOUR + 50 * SECOND, 11 * HOUR + late),
        ("taints", "Node n-2", 12 * HOUR, 14 * HOUR),
        ("resizes", "Node n-2", 15 * HOUR, None),
        ("quotas", "ClusterQueue q", 16 * HOUR, 18 * HOUR),
        ("quotas", "ClusterQueue q", 18 * HOUR, 20 * HOUR),
    ]


def test_the_marks_of_a_page_are_the_events_of_the_run(changing: harness.Run, charts: None) -> None:
    """Each has the time, the kind and the object of a row; nothing else is marked."""
    page = harness.make_report([changing]).html()
    kinds = {"remove": "failure", "quota[cpu]": "quota"}
    expected = {
        (f"0d {int(time[:-1]):02d}", kinds.get(field, field), f"{kind} {name}")
        for time, _, kind, name, field, _ in EVENTS[:-1]
    }
    marked = re.compile(r"(0d \d\d):[^(]*?: (\w+): (\w+ [\w-]+)")
    several = re.compile(r"(0d \d\d)\S+ to \S+ \S+: 2 \(2 quotas\): (ClusterQueue q)")
    told = drawn(page, "wide")
    assert {each.groups() for each in map(marked.match, told) if each} == expected
    assert len(told) == len(expected)
    # The quota changes twice within a few pixels of a telephone.
    told = drawn(page, "narrow")
    assert [each.groups() for each in map(several.match, told) if each] == [("0d 16", "ClusterQueue q")]
    assert {each.groups() for each in map(marked.match, told) if each} == {
        each for each in expected if each[1] != "quota"
    }


def test_every_change_of_the_run_begins_or_ends_a_mark(changing: harness.Run) -> None:
    """Or it follows one by a second, as the taint of a cordon does."""
    instants = {instant for mark in marks_of(changing) for instant in (mark.begin, mark.end)}
    for event in changing.info["cluster"]["events"]:
        at = event["at_us"]
        assert not event["edits"] or instants & {at - SECOND, at, at + SECOND}


def test_many_events_are_few_marks_with_numbers(failing_page: str) -> None:
    """The numbers add up to the events, and no two beginnings are nearer than a number is wide."""
    for width, most in (("wide", 33), ("narrow", 11)):
        told = drawn(failing_page, width)
        numbers = [re.search(r": (\d+) \(\d+ failures\): Node n-", each) for each in told]
        assert len(numbers) <= most
        assert sum(int(each[1]) if each else 1 for each in numbers) == 200
    assert [chart._short(count) for count in (2, 999, 1000, 9949, 9950, 100_000)] == [
        "2", "999", "1.0k", "9.9k", "10k", "100k",
    ]  # fmt: skip


def test_the_table_has_every_event_and_a_long_one_is_folded(
    changing: harness.Run, failing: harness.Run, failing_page: str
) -> None:
    """Below the chart, for readers without a mouse; in Markdown, too."""
    (short,), (long,) = tables(changing), tables(failing)
    assert short.caption == (
        "Changes of the cluster: 8 (1 cordon, 1 drain, 1 failure, 1 partition, 2 quotas, 1 resize, 1 taint)"
    )
    assert not short.folded
    assert list(short.rows[0]) == ["0d 01:00:00", "0d 02:00:00", "failure: Node n-0 is removed"]
    assert list(short.rows[5]) == ["0d 15:00:00", "", "resize: Node n-2: allocatable cpu 4 -> 1"]
    assert long.folded
    assert len(long.rows) == 200
    folded = f"<details><summary>{long.caption}</summary>"
    assert folded in failing_page
    assert f"{folded}\n\n| from | until | change |" in harness.make_report([failing]).markdown()


def test_a_very_long_table_says_how_much_it_leaves_out(
    failing: harness.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page stays small; run.json has all."""
    monkeypatch.setattr(allocation, "_MOST", 150)
    (table,) = tables(failing)
    assert len(table.rows) == 151
    assert list(table.rows[-1]) == ["…", "", "and 50 more, which run.json lists"]


def test_the_page_about_reports_has_these_limits(charts: None) -> None:
    """How near marks may be, and how long tables are."""
    text = " ".join((ROOT / "docs" / "report.md").read_text(encoding="utf-8").split())
    assert f"within {chart._APART} pixels" in text
    assert f"the first {allocation._MOST} changes" in text
    assert f"if it has more than {allocation._SHORT}" in text


def test_runs_with_the_same_events_have_one_table(changing: harness.Run, tmp_path: Path) -> None:
    """Runs with others have one of their own, which names them."""
    again, calm = (replayed(tmp_path, rows, label) for rows, label in ((EVENTS, "again"), ((), "calm")))
    assert [each.caption.partition(":")[0] for each in tables(changing, again)] == ["Changes of the cluster"]
    (table,) = tables(changing, again, calm)
    names = harness.compare([changing, again, calm]).names
    assert table.caption.startswith(f"Changes of the cluster of {names[0]}, {names[1]}: 8 (")


def test_a_report_without_events_is_as_before_there_were_marks(tmp_path: Path, charts: None) -> None:
    """No strip, no table, no style for one, and no word about changes."""
    page = harness.make_report([replayed(tmp_path, ())]).html()
    assert "prose" not in page
    assert "hanges of the cluster" not in page
    assert "<title>0d" not in page


def test_texts_say_how_many_events_there_were(changing: harness.Run, charts: None) -> None:
    """For readers who cannot see the chart; the chart with its strip is as Vega-Lite wants it."""
    chapters = harness.make_report([changing]).chapters
    (figure, *_) = [
        block
        for each in chapters
        if each.name == "allocation"
        for block in each.blocks
        if isinstance(block, Figure)
    ]
    assert "Changes of the cluster: 8 (1 cordon, 1 drain" in figure.words
    figure.draw(drawing.NARROW).to_dict(validate=True)
