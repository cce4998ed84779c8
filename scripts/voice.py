"""Checks how pages, docstrings and messages read: `python scripts/voice.py [FILE...]`.

The script prints faults line by line. Without files, it checks everything that the test suite checks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import NamedTuple

import click

ROOT = Path(__file__).resolve().parents[1]
MOST_WORDS, MOST_ON_AVERAGE, MOST_IN_A_LINE, MOST_IN_A_CELL = 30, 18, 120, 200
PHRASES = (
    "of which|that is said|which is said|as it has it|is told|are told|stands there|whom nobody|nobody else"
)
_FORBIDDEN = re.compile(rf"\b({PHRASES})\b", re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.) +|#")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ENTRY = re.compile(r"^ +(?=[\w*]+(?:, [\w*]+)*: )", re.MULTILINE)
"""The indentation of an entry below `Args:` and similar headings. An entry counts as an item."""
_MARKS = re.compile(r"^(?:#+|>+|[-*+]|\d+\.) +|\*\*|<[^>]+>")
_END = re.compile(
    r"""(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!\bal\.)["'”’)*_]*\s+"""
    r"""(?=["'“‘(*_\[]*(?:[A-Z0-9`▲▼~≥=?-]|harness|kube))"""
)


class Fault(NamedTuple):
    """A passage that exceeds a bound, with its first line, the bound and the text."""

    line: int
    kind: str
    text: str


class Passage(NamedTuple):
    """A unit of text, with its first line and whether it is the cell of a table."""

    line: int
    text: str
    cell: bool = False


def passages(markdown: str) -> Iterator[Passage]:
    """Yields the paragraphs, items, headings and cells of a page, but not its code."""
    begun, lines, fenced, item = 0, list[str](), False, False
    for number, line in enumerate([*markdown.split("\n"), ""], 1):
        fence = line.lstrip().startswith("```")
        code = fenced or fence or (line.startswith("    ") and not lines and not item)
        fenced = fenced != fence
        row = not code and line.lstrip().startswith("|")
        starts = bool(_ITEM.match(line))
        if line.strip() and not line.startswith(" "):
            item = starts and not line.startswith("#")
        if lines and (code or row or starts or not line.strip() or lines[0].startswith("#")):
            yield Passage(begun, " ".join(lines))
            lines = []
        if row:
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            yield from (Passage(number, cell.strip(), cell=True) for cell in cells if cell.strip(" -:"))
        elif not code and line.strip():
            begun = begun if lines else number
            lines.append(line.strip())


def drawn(passage: Passage) -> bool:
    """Returns True if a passage of a docstring or message is a tree, columns, or examples of help."""
    return bool(re.search(r"[├└│\b]|\S {3,}\S", passage.text))


def plain(text: str) -> str:
    """Returns a passage without markup. A piece of code becomes one word, and a link becomes its text."""
    return _MARKS.sub("", _LINK.sub(r"\1", _CODE.sub("`code`", text))).strip()


def sentences(text: str) -> list[str]:
    """Returns the sentences of plain text. Abbreviations and colons do not end sentences."""
    return [each for each in _END.split(text) if each]


def words(sentence: str) -> int:
    """Returns the number of words in a sentence that have a letter or a digit."""
    return sum(bool(re.search(r"\w", each)) for each in sentence.split())


def faults_of_passage(passage: Passage) -> Iterator[Fault]:
    """Yields sentences and cells that are too long, and forbidden phrases."""
    text = plain(passage.text)
    if passage.cell and (size := len(_LINK.sub(r"\1", passage.text))) > MOST_IN_A_CELL:
        yield Fault(passage.line, f"a cell of {size} characters", text)
    for sentence in sentences(text):
        if words(sentence) > MOST_WORDS:
            yield Fault(passage.line, f"{words(sentence)} words", sentence)
    yield from (Fault(passage.line, f"“{found[0]}”", text) for found in _FORBIDDEN.finditer(text))


def faults_of_page(markdown: str) -> list[Fault]:
    """Returns the faults of a page. Lines of code and of tables may have any length."""
    found, counted, fenced = list[Fault](), list[int](), False
    for number, line in enumerate(markdown.split("\n"), 1):
        fenced = fenced != line.lstrip().startswith("```")
        if len(line) > MOST_IN_A_LINE and not fenced and not re.match(r" *\||    ", line):
            found.append(Fault(number, f"a line of {len(line)} characters", line))
    for passage in passages(markdown):
        found += faults_of_passage(passage)
        if not passage.cell and not passage.text.startswith("#"):
            counted += map(words, sentences(plain(passage.text)))
    if sum(counted) > MOST_ON_AVERAGE * len(counted):
        found.append(Fault(1, f"{sum(counted) / len(counted):.1f} words a sentence", "on average"))
    return sorted(found)


def faults_of_code(source: str) -> list[Fault]:
    """Returns the faults of docstrings and of messages, which are other texts of four words or more."""
    found = set[Fault]()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "code" for part in parts)
        if " " in text:
            for passage in passages(_ENTRY.sub("- ", cleandoc(text))):
                if passage.text.count(" ") > 2 and not drawn(passage):
                    found |= set(faults_of_passage(passage._replace(line=node.lineno + passage.line - 1)))
    return sorted(found)


def faults_of(path: Path) -> list[Fault]:
    """Returns the faults of a Markdown or Python file."""
    text = path.read_text(encoding="utf-8")
    return faults_of_code(text) if path.suffix == ".py" else faults_of_page(text)


def pages() -> list[Path]:
    """Returns the pages that the test suite checks."""
    return _matching("*.md", "docs/*.md", "plugins/*.md", "traces/*.md")


def measured() -> list[Path]:
    """Returns the files that the test suite checks, which are pages and the code of the product."""
    return [*pages(), *_matching("harness/**/*.py", "plugins/**/*.py")]


def _matching(*patterns: str) -> list[Path]:
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


@click.command(help=__doc__)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def main(files: tuple[Path, ...]) -> None:
    """Print faults."""
    for path in files or measured():
        name = path.resolve().relative_to(ROOT).as_posix()
        lines = [f"{name}:{each.line}: {each.kind}: {each.text}\n" for each in faults_of(path)]
        click.echo("".join(lines), nl=False)


if __name__ == "__main__":
    main()
