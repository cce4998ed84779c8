"""Numbers in sentences, and names in tables: whole where there is room, and never two that look alike."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.text import agreeing, aligned, columns, counted, first_of, printable, times, told_apart

ROOT = Path(__file__).resolve().parents[1]


def test_one_of_something_is_in_the_singular() -> None:
    """All other numbers are in the plural."""
    assert [counted(count, "node") for count in (0, 1, 1500)] == ["0 nodes", "1 node", "1,500 nodes"]
    assert [times(count) for count in (0, 1, 1500)] == ["0 times", "once", "1,500 times"]


NAMES = st.lists(st.text("ab-", max_size=40) | st.text(max_size=30), max_size=12, unique=True)


@given(NAMES, st.integers(12, 60) | st.none())
def test_no_two_names_look_alike(names: list[str], most: int | None) -> None:
    """Whatever they share; those that fit stay whole, but for control characters."""
    shown = told_apart(names, most)
    assert len(set(shown)) == len(names)
    assert all(most is None or len(each) <= most for each in shown)
    if len(set(map(printable, names))) == len(names):
        for name, label in zip(names, shown, strict=True):
            assert label == printable(name) or (most is not None and len(name) > most) or "(" in label


def test_names_are_shortened_where_they_are_alike() -> None:
    """Names in a dump begin alike: more is kept of the end, where they differ."""
    names = [
        f"team-vision/job-resnet-ablation-{end}" for end in ("q2cd9-abcde", "q2cd9-abcdf", "x2cd9-abcde")
    ]
    assert told_apart(names, 24) == [f"team-vision/…{end[-11:]}" for end in names]
    assert told_apart(names, 20) == [f"team-…{end[-14:]}" for end in names]


ROWS = [
    ["name", "queue", "n"],
    ["team-vision/job-resnet-ablation-q2cd9", "recommendation", "1"],
    ["b", "q", "2"],
]


def test_names_are_whole_where_the_table_fits() -> None:
    """For a file or a pipe, and on a terminal that is as wide as the table."""
    whole = aligned(ROWS, left=(0, 1))
    wide = max(map(len, whole.split("\n")))
    assert aligned(ROWS, left=(0, 1), names={0: (), 1: ()}, width=wide) == whole
    assert "team-vision/job-resnet-ablation-q2cd9" in whole


def test_a_table_that_is_too_wide_shortens_its_longest_names() -> None:
    """By as much as is needed, and none below 12 letters."""
    for width in range(30, 57):
        table = aligned(ROWS, left=(0, 1), names={0: (), 1: ()}, width=width)
        assert max(map(columns, table.split("\n"))) == max(width, 12 + 2 + 12 + 2 + 1)
    assert "recommendation" in aligned(ROWS, left=(0, 1), names={0: (), 1: ()}, width=50)


def test_columns_that_do_not_fit_follow_below() -> None:
    """Each further table has the first column, and only the rows with more to say."""
    rows = [["job", "waits", "later"], ["a", "1h00m", "100%"], ["b", "2h00m", ""]]
    table = aligned(rows, left=(0, 1), width=12)
    assert table == ("job  waits\n───  ─────\na    1h00m\nb    2h00m\n\njob  later\n───  ─────\na     100%")
    assert aligned(rows, left=(0, 1), width=17) == aligned(rows, left=(0, 1))


def test_texts_that_do_not_fit_fold_in_their_cells() -> None:
    """Only columns to the left; no word is lost, and only one that is wider than its column is broken."""
    text = "a published figure of a scheduler that nobody runs any more"
    rows = [["result", "what it is", "n"], ["first", text, "1"], ["second", "x" * 60, "22"]]
    table = aligned(rows, left=(0, 1), width=40)
    assert max(map(columns, table.split("\n"))) == 40
    head, _, *lines = table.split("\n")
    starts = [at for at, sign in enumerate(head) if sign != " " and head[max(0, at - 2) : at].strip() == ""]
    told = " ".join(line[starts[1] : 36].strip() for line in lines)
    assert text in told
    assert "x" * 60 in told.replace(" ", "")
    assert [line[-2:].strip() for line in lines if line[0] != " "] == ["1", "22"]
    assert aligned(rows, left=(0, 1), width=80) == aligned(rows, left=(0, 1))


def test_names_of_other_tables_do_not_look_alike_either() -> None:
    """What is shortened the same way in another table is another name."""
    first, second = "a-very-long-prefix-1-and-a-very-long-end", "a-very-long-prefix-2-and-a-very-long-end"
    tables = [aligned([["name"], [each]], names={0: [first, second]}, width=20) for each in (first, second)]
    assert tables[0] != tables[1]


def test_a_noun_and_its_verb_agree_with_their_count() -> None:
    """In the present and in the past of `be`."""
    assert [agreeing(count, "job", "were") for count in (1, 1_200)] == ["1 job was", "1,200 jobs were"]
    assert [agreeing(count, "task", "depend") for count in (1, 0)] == ["1 task depends", "0 tasks depend"]


def test_notes_of_readers_never_count_1_jobs() -> None:
    """A count before a plural comes from `counted` or `agreeing`; limits, in capitals, are many."""
    plural = re.compile(r" (jobs|pods|tasks|rows|instances|objects|attempts|events|nodes|columns|cells)\b")
    found = []
    for folder in ("plugins/harness_plugins/readers", "harness/readers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for text in ast.walk(ast.parse(path.read_text())):
                parts = text.values if isinstance(text, ast.JoinedStr) else []
                for value, after in pairwise(parts):
                    if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant):
                        counts = value.format_spec is not None and not ast.unparse(value.value).isupper()
                        if counts and plural.match(str(after.value)):
                            found.append(f"{path.name}:{text.lineno}: {ast.unparse(value.value)}")
    assert found == []


@pytest.mark.parametrize(
    ("names", "told"), [("ab", "a, b"), ("abc", "a, b and 1 more node"), ("abcd", "a, b and 2 more nodes")]
)
def test_the_first_of_many_names_come_with_the_number_of_the_others(names: str, told: str) -> None:
    """One other is no plural."""
    assert first_of([*names], 2, "node") == told
    assert first_of([*names], 2) == told.split(" node")[0]
