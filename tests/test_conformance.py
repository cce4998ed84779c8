"""Comparing answers with recorded ones: what counts as a difference, and what a user sees of it."""

from __future__ import annotations

import gzip
import json
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness import Register, hookimpl
from harness.base.errors import InputError
from harness.cli import cli
from harness.plugins import loading as plugins
from harness.plugins.conformance import ConformanceSpec, Difference, check, differences, read_cases

CASE = {
    "id": "sum/1",
    "component": "test/sum",
    "source": "hand",
    "features": ["small"],
    "objects": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}],
    "given": {"numbers": [1, 2]},
    "expect": {"sum": 3, "effort": 1},
}


def total(case: Mapping[str, Any]) -> dict[str, Any]:
    """A component that adds numbers, with an effort that nobody judges."""
    return {"sum": sum(case["given"]["numbers"]), "effort": 7}


class Adder:
    """A plugin that answers for `test/sum`."""

    @hookimpl
    def harness_register_conformance(self, register: Register[ConformanceSpec]) -> None:
        register(
            ConformanceSpec(
                "test/sum", total, help="adds", informative=["effort"], explain=lambda case: "added them up"
            )
        )


class Strict:
    """A plugin that says what its cases may give."""

    @hookimpl
    def harness_register_conformance(self, register: Register[ConformanceSpec]) -> None:
        fields = ["given.numbers", "given.more[].deep", "config.on"]
        register(ConformanceSpec("test/sum", total, help="adds", informative=["effort"], fields=fields))


@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        ({"config": {"on": {"x": 1}}}, ""),
        ({"given": {"numbers": [1, 2], "more": [{"deep": {"x": 1}}]}}, ""),
        ({"given": {"numbers": [1, 2], "events": []}}, ""),
        ({"given": {"numbers": [1, 2], "events": [1]}}, "given.events"),
        ({"given": {"numbers": [1, 2], "more": [{"deep": 1, "odd": 1}]}}, "given.more[].odd"),
        ({"config": {"off": 1}}, "config.off"),
        ({"later": 1}, "later"),
    ],
)
def test_a_case_with_more_than_its_component_knows_is_refused(
    change: dict[str, Any], unknown: str, corpus: Callable[..., Path]
) -> None:
    """An answer that leaves something out proves nothing, also where it is the recorded one."""
    strict = plugins.load(only=["strict"], extra={"strict": Strict()})
    report = check(read_cases([corpus({**CASE, **change})]), strict)
    told = [verdict.error for verdict in report.differing]
    assert told == ([f"has fields that its component does not know: {unknown}"] if unknown else [])


@pytest.fixture
def corpus(tmp_path: Path) -> Callable[..., Path]:
    """Writes cases as a corpus file."""

    def write(*cases: Mapping[str, Any], name: str = "cases.jsonl.gz") -> Path:
        path = tmp_path / name
        text = "".join(json.dumps(case) + "\n" for case in cases)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


def loaded() -> plugins.Plugins:
    """Only the plugin of this file."""
    return plugins.load(only=["adder"], extra={"adder": Adder()})


def case(number: int, expected: int, *features: str) -> dict[str, Any]:
    """A case that asks for 1 + 2."""
    return {
        **CASE,
        "id": f"sum/{number}",
        "features": list(features),
        "expect": {"sum": expected, "effort": 7},
    }


def test_agreement_is_counted_by_component_and_feature(corpus: Callable[..., Path]) -> None:
    """A case counts for each of its tags; the cases that differ are kept in order."""
    path = corpus(case(1, 3, "a"), case(2, 4, "a", "b"), case(3, 3, "b"))
    report = check(read_cases([path]), loaded())
    assert (report.total.cases, report.total.agree) == (3, 2)
    assert (report.features["test/sum", "a"].cases, report.features["test/sum", "a"].agree) == (2, 1)
    assert [verdict.id for verdict in report.differing] == ["sum/2"]
    assert report.differing[0].differences == (Difference("sum", 4, 3),)


def test_informative_fields_are_reported_and_not_judged(corpus: Callable[..., Path]) -> None:
    """A field that carries an artefact of the recording cannot make a case differ."""
    report = check(read_cases([corpus(CASE)]), loaded())
    assert report.differing == []
    assert report.informative == {("test/sum", "effort"): 1}


def test_counters_are_judged_on_request(corpus: Callable[..., Path]) -> None:
    """A field that is only reported otherwise makes a case differ."""
    report = check(read_cases([corpus(CASE)]), loaded(), counters=True)
    assert report.differing[0].differences == (Difference("effort", 1, 7),)
    assert report.informative == {}


def test_an_error_of_the_plugin_is_a_case_that_differs(corpus: Callable[..., Path]) -> None:
    """One broken answer does not hide the others."""
    broken = {**CASE, "given": {"numbers": ["1"]}}
    report = check(read_cases([corpus(broken, case(2, 3))]), loaded())
    assert report.total.agree == 1
    assert "TypeError" in report.differing[0].error


def test_differences_name_the_smallest_part_that_differs() -> None:
    """Fields and places in lists are named; what only one side has is absent on the other."""
    expected = {"a": [1, {"b": 2}], "c": True}
    assert list(differences(expected, {"a": [1, {"b": 3}, 4], "c": 1})) == [
        Difference("a[1].b", 2, 3),
        Difference("a[2]", "(absent)", 4),
        Difference("c", True, 1),
    ]


def test_plain_and_gzipped_corpora_are_read(corpus: Callable[..., Path]) -> None:
    """What a file is follows from its bytes."""
    paths = [corpus(CASE), corpus(CASE, name="cases.jsonl")]
    assert [found["id"] for found in read_cases(paths)] == ["sum/1", "sum/1"]
    marked = paths[1].with_name("marked.jsonl")
    marked.write_bytes(BOM_UTF8 + paths[1].read_bytes())
    assert [found["id"] for found in read_cases([marked])] == ["sum/1"]


def test_cases_are_selected_by_component_features_and_id(corpus: Callable[..., Path]) -> None:
    """Several features narrow the choice: a case must have all of them."""
    path = corpus(case(1, 3, "a"), case(2, 3, "a", "b"))
    assert [found["id"] for found in read_cases([path], features=["a", "b"])] == ["sum/2"]
    assert [found["id"] for found in read_cases([path], case="sum/1")] == ["sum/1"]
    assert list(read_cases([path], component="other")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "x"}', "line 1 is not a case: it lacks component, features, objects, given, expect"),
        ("{", "line 1 is not JSON"),
        ("[]", "line 1 is not a case"),
    ],
)
def test_a_line_that_is_no_case_is_named(tmp_path: Path, text: str, message: str) -> None:
    """The message has the file and the line."""
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        list(read_cases([path]))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"[1]", "is not a case, because a case is a mapping"),
        (json.dumps({**CASE, "features": [["a"]]}).encode(), "is not a case: its features must be strings"),
        (json.dumps({**CASE, "objects": [1]}).encode(), "is not a case: its objects must be mappings"),
        (b'{"id": "\xff"}', "is not UTF-8 text"),
        (b"{", "is not JSON"),
    ],
)
def test_an_odd_line_is_named_by_its_number_in_the_file(tmp_path: Path, line: bytes, what: str) -> None:
    """Empty lines count, and what stands before it is of no account."""
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b"\n".join([json.dumps(CASE).encode(), b"", b"  ", line, b""]))
    with pytest.raises(InputError, match=f"line 4 {what}"):
        list(read_cases([path]))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """A gzip file that was cut off is an error, not a shorter corpus."""
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(CASE).encode() * 50)[:-20])
    with pytest.raises(InputError, match="cannot be read"):
        list(read_cases([path]))


def test_a_missing_file_is_found_before_the_first_case(tmp_path: Path) -> None:
    """Nobody waits for a long corpus, only to read that another one is missing."""
    there = tmp_path / "there.jsonl"
    there.write_text(json.dumps(CASE), encoding="utf-8")
    with pytest.raises(InputError, match=r"gone\.jsonl: cannot be read"):
        next(read_cases([there, tmp_path / "gone.jsonl"]))


def test_a_component_that_nobody_answers_for_is_an_error(corpus: Callable[..., Path]) -> None:
    """It is not counted as a difference: nothing was asked."""
    path = corpus({**CASE, "component": "test/som"})
    with pytest.raises(InputError, match="no plugin registers component 'test/som'") as error:
        check(read_cases([path]), loaded())
    assert error.value.hint == "did you mean 'test/sum'?"


# --- the command ------------------------------------------------------------------------------------------

NAMED = Path(__file__).parent / "conformance" / "kube-preempt-named.jsonl.gz"


def wrong(tmp_path: Path) -> Path:
    """A corpus of two cases, the second with a wrong expectation."""
    with gzip.open(NAMED, "rt") as lines:
        first, second = (json.loads(next(lines)) for _ in range(2))
    second["expect"]["node"] = "n2"
    path = tmp_path / "wrong.jsonl"
    path.write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n")
    return path


COUNTED = Path(__file__).parent / "conformance" / "koordinator-preempt-dev-first-120.jsonl.gz"
COUNTED_CASE = "koordinator-preempt/dev/20006"  # the text of its error is an artefact of the recording


@pytest.mark.parametrize("selected", [("--case", COUNTED_CASE), ("--feature", "node-error", "--jobs", "2")])
def test_command_judges_counters_on_request(selected: tuple[str, ...]) -> None:
    """With `--counters` such a field makes a case differ, also with `--case` and in other processes."""
    command = ["conform", str(COUNTED), *selected]
    assert CliRunner().invoke(cli, command).exit_code == 0
    found = CliRunner().invoke(cli, [*command, "--counters"])
    assert found.exit_code == 1
    assert 'expected "no corresponding pod r01 in pods of node n0"' in found.output


def test_command_names_the_option_that_judges_what_is_only_reported() -> None:
    """The line below the table says which field differs, and which option judges it."""
    found = CliRunner().invoke(cli, ["conform", str(COUNTED), "--feature", "node-error"])
    assert "error differs in 22 cases; it is reported, not judged (--counters judges it)" in found.output


def test_command_prints_agreement_and_succeeds() -> None:
    """Without a difference the exit code is 0."""
    found = CliRunner().invoke(cli, ["conform", str(NAMED), "--feature", "pdb"])
    assert found.exit_code == 0
    assert "kube-scheduler/preempt  cases  agree" in found.output
    assert "100 %" in found.output


def test_command_shows_the_first_differences_and_fails(tmp_path: Path) -> None:
    """The diff has what was expected, what was answered, and the objects it is about."""
    found = CliRunner().invoke(cli, ["conform", str(wrong(tmp_path))])
    assert found.exit_code == 1
    assert 'expected "n2"' in found.output
    assert 'got      "n1"' in found.output
    assert 'Node {"apiVersion": "v1"' in found.output


def test_command_prints_json(tmp_path: Path) -> None:
    """One document with the same content, for other programs."""
    found = CliRunner().invoke(cli, ["conform", str(wrong(tmp_path)), "--json"])
    content = json.loads(found.stdout)
    assert (content["cases"], content["agree"]) == (2, 1)
    assert content["differing"][0]["differences"] == [{"path": "node", "expected": "n2", "got": "n1"}]


def test_command_prints_a_whole_case_with_an_explanation() -> None:
    """`--case` shows the case itself and how the plugin came to its answer."""
    found = CliRunner().invoke(cli, ["conform", str(NAMED), "--case", "kube-preempt/named/design-1"])
    assert found.exit_code == 0
    assert '"id": "kube-preempt/named/design-1"' in found.output
    assert "candidate: 0 PDB violations, victims default/c" in found.output
    assert "agrees with the component" in found.output


@pytest.mark.parametrize(
    ("options", "said", "hint"),
    [
        (["--feature", "none"], "no case was selected", "leave out --feature to select all cases"),
        (
            ["--feature", "none", "--component", "kube-scheduler/preempt"],
            "no case was selected",
            "leave out --component and --feature to select all cases",
        ),
        ([], "no case in EMPTY", None),
    ],
)
def test_command_says_when_nothing_was_selected(
    tmp_path: Path, options: list[str], said: str, hint: str | None
) -> None:
    """An empty selection is a mistake of the caller, not a success. The hint names only given options."""
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    found = CliRunner().invoke(cli, ["conform", str(NAMED if options else empty), *options])
    assert found.exit_code != 0
    assert isinstance(found.exception, InputError)
    assert (str(found.exception.message), found.exception.hint) == (said.replace("EMPTY", str(empty)), hint)
