"""Rules of reading manifest text: Kubernetes' YAML, bounded in depth and growth."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import Fault
from harness.cluster.yaml import documents
from harness.cluster.yaml.fields import Fields
from harness.cluster.yaml.scalars import Word, reads_as_text, settled


def read(text: str) -> tuple[list[Any], list[str]]:
    """The contents of all documents, and all faults as text."""
    faults: list[Fault] = []
    found, _ = documents.read_documents(text, faults)
    return [document.content for document in found], [str(fault) for fault in faults]


def value(text: str) -> Any:
    """The value of the only field `x` of a faultless document."""
    contents, faults = read(f"x: {text}\n")
    assert faults == []
    return contents[0]["x"]


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("1:30:00", "1:30:00"),
        ("12", 12),
        ("-3", -3),
        ("+4", 4),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000),
        ("2.0", 2),
        ("1e-7", 1e-7),
        ("100m", "100m"),
        ("1e999", "1e999"),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 18446744073709552000),
        ("-9223372036854775808", -9223372036854775808),
        ("+9223372036854775808", 9223372036854776000),
        ("1" * 400, "1" * 400),
        ("010", 8),
        ("0o17", 15),
        ("0O17", 15),
        ("-007", -7),
        ("0644", 420),
        ("0_644", 420),
        ("08", 8),
        ("09.5", 9.5),
        ("0o8", "0o8"),
        ("0X1f", 31),
        ("0x_1_", 1),
        ("0x", "0x"),
        ("0b2", "0b2"),
        ("0x10000000000000000", "0x10000000000000000"),
        ("1_", 1),
        ("_1", "_1"),
        (".5_0", 0.5),
        ("._5", "._5"),
        ("+.5", 0.5),
        ("-0.0", 0),
        ("1e21", 1e21),
        ("True", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("!!bool no", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("nULL", "nULL"),
        ("'12'", "12"),
        ('"yes"', "yes"),
        ("! 12", "12"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("=", "="),
    ],
)
def test_plain_scalar_is_what_kubernetes_reads(plain: str, expected: object) -> None:
    """No timestamps, no base 60; numbers and booleans as in the YAML library that kubectl uses."""
    found = value(plain)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("plain", ["y", "N", "yes", "No", "ON", "off"])
def test_word_of_yaml_1_1_is_what_the_field_wants(plain: str) -> None:
    """Text where text may stand, and the boolean of YAML 1.1 in a field that is one or is asked for one."""
    truth = plain.lower() in ("y", "yes", "on")
    assert value(plain) == plain
    assert Fields({"x": value(plain)}, "", []).string("x") == plain
    assert type(Fields({"x": value(plain)}, "", []).string("x")) is str
    assert Fields({"x": value(plain)}, "", []).boolean("x") is truth
    assert read(f"suspend: {plain}\n")[0] == [{"suspend": truth}]
    assert read(f"{plain}: 1\n")[0] == [{json.dumps(truth): 1}]
    assert settled([{"x": Word(plain)}]) == [{"x": truth}]


def test_boolean_in_quotes_is_no_boolean() -> None:
    """Only a plain word is one to Kubernetes."""
    faults: list[Fault] = []
    Fields({"x": value('"yes"')}, "", faults).boolean("x")
    assert [str(fault) for fault in faults] == ["x: must be true or false, not 'yes'"]


@pytest.mark.parametrize("plain", [".inf", "-.INF", ".nan"])
def test_number_without_json_value_is_a_fault(plain: str) -> None:
    """JSON has neither infinity nor NaN."""
    assert "not a number that a manifest can hold" in read(f"x: {plain}")[1][0]


def test_documents_are_numbered_and_know_their_first_line() -> None:
    """Comments, empty documents and document ends change neither order nor lines."""
    text = "# a comment\n---\n# nothing here\n---\na: 1\n...\n--- # two\n\nb: 2\n---\n---\nc: [\n---\nd: 1\n"
    contents, faults = read(text)
    assert contents == [{"a": 1}, {"b": 2}, {"d": 1}]
    assert len(faults) == 1
    assert faults[0].startswith("document 3 (line 11), line 13: not valid YAML")


def test_directives_and_byte_order_do_not_matter() -> None:
    """`%YAML` before the first document is skipped, and line ends may be Windows'."""
    assert read("%YAML 1.1\r\n---\r\na: 1\r\n---\r\nb: 2\r\n") == ([{"a": 1}, {"b": 2}], [])


def test_marks_inside_of_text_do_not_cut() -> None:
    """Only a line that begins with the mark is one."""
    assert read("a: |\n  x\n  ---\n  y\nb: 1\n")[0] == [{"a": "x\n---\ny\n", "b": 1}]


def test_key_twice_is_a_fault_at_its_line() -> None:
    """Only the last one would count, in silence."""
    assert read("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")[1] == [
        "document 1 (line 1), line 5: 'c' is given twice in one mapping"
    ]
    assert read('{"a": 1, "a": 2}')[1] == ["document 1 (line 1): 'a' is given twice in one mapping"]


def test_keys_become_text_as_in_json() -> None:
    """Numbers and booleans are written out; nothing else can be a key."""
    assert read("1: a\ntrue: b\n1.5: c\n")[0] == [{"1": "a", "true": "b", "1.5": "c"}]
    for text in ("[a]: 1", "{a: b}: 1", "~: 1", "? [a]\n: 1"):
        assert "key" in read(text)[1][0]


def test_aliases_and_merges_are_expanded() -> None:
    """In order, as Kubernetes does it: what stands below wins; of a list of mappings the first does."""
    text = "a: &a {x: 1, v: 1}\nb: &b {v: 2, z: 2}\nc: {<<: [*a, *b], z: 3}\nd: *a\ne: {x: 7, z: 7, <<: *a}\n"
    content, faults = read(text)
    assert faults == []
    assert content[0]["c"] == {"x": 1, "v": 1, "z": 3}
    assert content[0]["d"] == {"x": 1, "v": 1}
    assert content[0]["e"] == {"x": 1, "v": 1, "z": 7}
    assert "'z' is given twice" in read("b: &b {z: 2}\nc: {<<: *b, z: 3, z: 4}\n")[1][0]


def test_alias_bomb_is_refused() -> None:
    """What aliases would expand to is bounded, and it is found out without expanding it."""
    rows = ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert "aliases expand to more than 1,000,000 values" in read("\n".join(rows))[1][0]
    rows = ["a0: &a0 {x: 1}"]
    rows += [f"a{n}: &a{n} {{b: *a{n - 1}, c: *a{n - 1}, <<: *a{n - 1}}}" for n in range(1, 40)]
    assert "aliases expand to more than 1,000,000 values" in read("\n".join(rows))[1][0]


def test_anchor_that_is_given_again_stands_for_the_later_value() -> None:
    """An alias refers to the last value above it, also within a value whose own anchor had the same name."""
    assert read("a: &x 1\nb: *x\nc: &x [2]\nd: *x\n") == ([{"a": 1, "b": 1, "c": [2], "d": [2]}], [])
    assert read("a: &x {b: &x 1, c: *x}\nd: *x\n") == ([{"a": {"b": 1, "c": 1}, "d": 1}], [])


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "a: *b", "a: &a {<<: *a}"])
def test_alias_must_refer_to_something_finished(text: str) -> None:
    """A value cannot hold itself, and an alias needs an anchor above it."""
    assert "*" in read(text)[1][0]


@pytest.mark.parametrize("text", ["[" * 200_000, "{a: " * 200_000, '{"a":' * 200_000, "- " * 5_000 + "x"])
def test_deep_nesting_is_refused(text: str) -> None:
    """However deep the text, neither the interpreter's stack nor the parser's runs out."""
    contents, faults = read(text)
    assert contents == []
    assert "nested more than 100 levels deep" in faults[0]


@pytest.mark.parametrize(
    "text",
    [
        "a: !!binary aGk=",
        "a: !thing 1",
        "a: !!python/object:os.system 1",
        "!!set {a}",
        "a: !!int x",
        "a: !!omap []",
    ],
)
def test_tag_that_json_does_not_know_is_a_fault(text: str) -> None:
    """A manifest is JSON in another dress."""
    assert "tag" in read(text)[1][0]


@pytest.mark.parametrize(
    "text", ["a: b: c", "\ta: 1", "a: 'x", "a: @b", "a: \x07", "}", "- a\nb: 1", "a: \ud800"]
)
def test_broken_yaml_is_a_fault_with_its_place(text: str) -> None:
    """The parser's own words, and the line."""
    contents, faults = read(text)
    assert contents == []
    assert faults[0].startswith("document 1 (line 1)")


def test_json_is_read_as_json() -> None:
    """What kubectl prints with `-o json` needs no YAML parser."""
    content = {"kind": "List", "items": [{"a": "\u00e9\U0001f600", "b": 1.5, "c": None, "d": "\t"}]}
    assert read(json.dumps(content, indent="\t")) == ([content], [])
    assert read("\n " + json.dumps(content, ensure_ascii=False)) == ([content], [])


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"a": 1', '{"a": 1} b: 2', '{"a": 1e5,,}'])
def test_broken_json_is_a_fault(text: str) -> None:
    """What is no JSON is tried as YAML, which says where it breaks."""
    assert len(read(text)[1]) == 1


def test_flow_style_yaml_is_no_json() -> None:
    """A document that begins with a brace may be YAML."""
    assert read("{a: 1, b: [x, z]}\n---\nc: 1\n")[0] == [{"a": 1, "b": ["x", "z"]}, {"c": 1}]


def test_number_too_long_for_python_is_text() -> None:
    """Python refuses to convert very long numbers; a field that wants a number refuses the text."""
    assert value("9" * 5000) == "9" * 5000
    assert read('{"x": ' + "9" * 5000 + "}")[0] == [{"x": "9" * 5000}]


@pytest.mark.parametrize("text", ["a", "n1", "x y", "a.b", "-", "nope", "1:30", "2026-01-01"])
def test_text_that_needs_no_quotes(text: str) -> None:
    """Plain scalars that stay text."""
    assert reads_as_text(text)


@given(st.text(max_size=40) | st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,?<~ \n\t0123456789.ex_", max_size=60))
def test_any_text_is_documents_or_faults(text: str) -> None:
    """No text raises anything, and what is read can be written as JSON."""
    contents, faults = read(text)
    json.dumps(contents, allow_nan=False)
    assert all(faults)


@given(st.text(alphabet="ab:-[]{}&*!|>'\"%@#,?<~ \n0123456789.ex_", max_size=60))
def test_reading_does_not_depend_on_the_c_parser(text: str) -> None:
    """Without libyaml the same text gives the same values, or is refused as well."""
    fast = read(text)
    loader = documents._Loader
    documents._Loader = yaml.SafeLoader
    try:
        slow = read(text)
    finally:
        documents._Loader = loader
    if not fast[1] and not slow[1]:
        assert fast[0] == slow[0]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(alphabet=st.characters(codec="utf-8"), max_size=8), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.text(alphabet=st.characters(codec="utf-8"), max_size=8), JSON_VALUES, min_size=1))
def test_json_text_reads_as_python_reads_it(content: dict[str, Any]) -> None:
    """JSON in, the same values out, escaped or not."""
    for escaped in (True, False):
        assert read(json.dumps(content, ensure_ascii=escaped)) == ([content], [])
