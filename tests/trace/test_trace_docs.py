"""The documentation of traces names what there is, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from harness.plugins import load
from harness.trace.schema import COLUMNS, REQUIRED

PAGES = ("traces.md", "sources.md", "sources-published.md", "sources-live.md")
TEXT = "\n".join((Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8") for page in PAGES)


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading."""
    section = TEXT.split(f"{heading}\n")[1].split("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_column_of_the_schema_is_documented_with_its_type() -> None:
    """The table is the schema, column by column."""
    documented = {}
    for names, kind, default, *_ in rows_of("## The schema, version 1"):
        for name in re.findall(r"`([^`]+)`", names):
            documented[name.replace("<resource>", "")] = (kind, default == "refused")
    declared = {column.name: (column.kind.value, column.name in REQUIRED) for column in COLUMNS}
    recorded = ("as `submit_time`", False)
    assert documented == {
        **declared,
        "recorded_start": recorded,
        "recorded_end": recorded,
        "recorded_runs": ("string", False),
    }


def test_every_option_of_the_built_in_readers_is_documented_with_its_default() -> None:
    """Conventions move results, so none is hidden."""
    headings = [line for line in TEXT.splitlines() if line.startswith("### ")]
    for spec in load(only=["readers"]).readers:
        (heading,) = (line for line in headings if line.partition(":")[0] == f"### {spec.name}")
        documented = {cells[0].strip("|` "): cells[1] for cells in rows_of(heading)}
        assert set(documented) == {option.name for option in spec.options}
        for option in spec.options:
            first = re.split(r"[`:,]", documented[option.name].lstrip("`"))[0]
            given = first if "none" in option.choices else first.replace("none", "")
            assert option.parse(given) == option.default
