"""What the page about quotas over time shows works as it stands."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import yaml

from harness.base.units import DAY, HOUR
from harness.cluster.changes.over_time import unrolled
from harness.cluster.changes.timed import KINDS
from harness.cluster.load import load_cluster
from harness.cluster.model import ClusterQueue

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")
ROOT = Path(__file__).parents[2]


def test_the_patches_on_the_page_hold_when_it_says() -> None:
    """Half the quota for two days, and a drain of four hours."""
    text = PAGE.split("```yaml\n")[1].split("```")[0]
    assert text.split("\n", 1)[1] == (ROOT / "docs" / "examples" / "events.yaml").read_text(encoding="utf-8")
    base = load_cluster(ROOT / "traces" / "mix.cluster.yaml")
    changes = unrolled(base.patched(list(yaml.safe_load_all(text))), None).changes
    assert [at for at, _ in changes] == [3 * DAY + 2 * HOUR, 5 * DAY, 6 * DAY, 6 * DAY + 4 * HOUR]
    assert [edits[0].after.stop_policy for _, edits in changes] == ["None", "None", "HoldAndDrain", "None"]


def test_the_table_on_the_page_is_the_file_and_says_what_the_patches_say() -> None:
    """So that a reader can choose either."""
    file = ROOT / "docs" / "examples" / "events.csv"
    shown = [line.strip("| ").split(" | ") for line in PAGE.split("\n") if "| ClusterQueue |" in line]
    assert [",".join(cells) for cells in shown] == file.read_text(encoding="utf-8").split()[1:]
    base = load_cluster(ROOT / "traces" / "mix.cluster.yaml")
    ways = (base.patched(file), base.patched(ROOT / "docs" / "examples" / "events.yaml"))
    table, patches = (unrolled(each, None) for each in ways)
    assert table.digest == patches.digest


def test_the_tables_of_the_page_about_changed_quotas_say_what_it_says() -> None:
    """Half a quota for two weeks; and nights with half of one quota and half as much again of another."""
    page = (ROOT / "docs" / "changed-quota.md").read_text(encoding="utf-8")
    half, office = (ROOT / "docs" / "examples" / f"{name}.csv" for name in ("half-quota", "office-hours"))
    (row,) = half.read_text(encoding="utf-8").split()[1:]
    assert f"| {' | '.join(row.split(','))} |" in page
    base = load_cluster(ROOT / "traces" / "philly.cluster.yaml")

    def gpus(queue: ClusterQueue) -> int:
        return queue.resource_groups[0].flavors[0].resources["nvidia.com/gpu"].nominal

    cut = unrolled(base.patched(half), None).changes
    assert [(at // DAY, gpus(edits[0].after)) for at, edits in cut] == [(14, 58), (28, 116)]
    monday = int(datetime(2017, 9, 4, tzinfo=UTC).timestamp()) * 1_000_000
    nights = unrolled(base.patched(office), monday).changes
    assert [at % DAY // HOUR for at, _ in nights] == [20, 8] * 25
    found = [{edit.name: gpus(edit.after) for edit in edits} for _, edits in nights]
    assert found == [{"6214e9": 59, "ee9e8c": 174}, {"6214e9": 117, "ee9e8c": 116}] * 25


def test_the_page_names_the_kinds_that_may_have_a_time() -> None:
    """All of them, and no other."""
    sentence = " ".join(PAGE.split()).partition("These kinds may have a time: ")[2].partition(". ")[0]
    assert sorted(re.findall(r"\b[A-Z]\w+", sentence)) == sorted(KINDS)
