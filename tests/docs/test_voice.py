"""How pages, docstrings and messages read: sentences, lines and cells keep bounds."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def voice(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`scripts/voice.py`, which is in no package."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("voice")


@pytest.mark.nightly
def test_pages_docstrings_and_messages_keep_the_bounds(voice: ModuleType) -> None:
    """`python scripts/voice.py` names each sentence, line or cell that does not."""
    found = [f"{path.name}:{fault}" for path in voice.measured() for fault in voice.faults_of(path)]
    assert not found


def test_the_changelog_of_a_version_fits_a_screen_or_two() -> None:
    """A reader of a release wants what it brought, and not its history."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert max(len(version.splitlines()) for version in changelog.split("\n## ")[1:]) <= 80


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Short. " * 17, []),
        ("a " * 31, ["31 words", "31.0 words a sentence"]),
        ("Ends. harness " + "a " * 29, []),
        ("a " * 19 + "b.", ["20.0 words a sentence"]),
        ("See `a b c d` and [one two](three.md). It does.", []),
        ("Such as e.g. This " + "a " * 27, ["31 words", "31.0 words a sentence"]),
        ("It waits, which is said.", ["“which is said”"]),
        ("x" * 121, ["a line of 121 characters"]),
        ("| " + "x" * 200 + " |", []),
        ("| " + "x" * 201 + " |", ["a cell of 201 characters"]),
        ("```\n" + "one " * 40 + "\n```", []),
        ("    harness " + "one " * 40, []),
        ("- an item\n    " + "a " * 29, ["31 words", "31.0 words a sentence"]),
        ("- an item\n- " + "a " * 28, []),
        ("# " + "a " * 31, ["31 words"]),
    ],
)
def test_what_is_beyond_a_bound_is_found(voice: ModuleType, text: str, kinds: list[str]) -> None:
    """Code is not read, items and cells are read by themselves, and a link counts as its text."""
    assert [fault.kind for fault in voice.faults_of_page(text)] == kinds


def test_docstrings_and_messages_are_read_too(voice: ModuleType) -> None:
    """A piece that a message fills in counts as one word."""
    long = "one " * 29
    source = f'def f(x):\n    """{long} two three."""\n    return f"{long} {{x}} four."\n'
    found = voice.faults_of_code(source)
    assert [(fault.line, fault.kind) for fault in found] == [(2, "31 words"), (3, "31 words")]


@pytest.mark.parametrize("drawing", ["a\n├── {0}", "name   {0}", "\b\n{0}"])
def test_what_a_docstring_draws_is_no_sentence(voice: ModuleType, drawing: str) -> None:
    """Trees, columns and the examples of a command's help."""
    assert not voice.faults_of_code(repr(drawing.format("one " * 40)))


LONG = "word " * 40
PAGES = (
    f"{LONG}\n{LONG}",
    f"- {LONG}\n  {LONG}\n- short",
    f"1. {LONG}\n\n   {LONG}",
    "z " + "x" * 115 + " - y",
    "y " * 58 + "`a code span of words`",
    f"| {LONG} |\n\n    {LONG}\n\n```\n{LONG}\n```\n\n> {LONG}\n\n[a]: {'x' * 130}",
    "short\nlines",
)


@pytest.mark.parametrize("page", PAGES)
def test_wrapping_changes_nothing_but_lines(voice: ModuleType, page: str) -> None:
    """What is read stays, also where a line begins with a sign; twice is once; code and tables stay."""
    wrapped = importlib.import_module("wrap_pages").wrapped
    made = wrapped(page)
    assert made.split() == page.split()
    assert wrapped(made) == made
    assert [each.text.split() for each in voice.passages(made)] == [
        each.text.split() for each in voice.passages(page)
    ]
    kept = r"[|>\[ `]"
    assert all(len(line) <= 120 or re.match(kept, line) or "```" in made for line in made.split("\n"))
