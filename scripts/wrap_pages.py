"""Wraps long lines of prose in pages: `python scripts/wrap_pages.py [FILE...]`, by default in all pages.

If a line of a paragraph or an item is longer than the limit of `scripts/voice.py`, the script wraps the whole
paragraph or item again. Code, tables, headings and quotations stay unchanged, and no word or code span is
broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
from voice import MOST_IN_A_LINE, pages

_ITEM = re.compile(r"(\s*(?:[-*+]|\d+\.) +)")
_KEPT = re.compile(r"\s*(?:[|#>]|```|\[[^\]]+\]: )")
_MARK = re.compile(r"[-*+#>|=]+$|\d+[.)]$")
"""A word that Markdown would interpret at the beginning of a line."""


def wrapped(markdown: str) -> str:
    """Returns a page whose lines of prose are not too long."""
    lines, made, place, fenced, in_list = markdown.split("\n"), list[str](), 0, False, False
    while place < len(lines):
        line = lines[place]
        fence = line.lstrip().startswith("```")
        fenced = fenced != fence
        item = None if fenced or fence else _ITEM.match(line)
        if line.strip() and not line.startswith(" "):
            in_list = item is not None
        code = fenced or fence or (line.startswith("    ") and not in_list)
        end = place + 1
        if line.strip() and not code and not _KEPT.match(line):
            while end < len(lines) and lines[end].strip() and not _begins(lines[end]):
                end += 1
            if any(len(each) > MOST_IN_A_LINE for each in lines[place:end]):
                made += _filled(lines[place:end], item.group(1) if item else "")
                place = end
                continue
        made += lines[place:end]
        place = end
    return "\n".join(made)


def _begins(line: str) -> bool:
    """Returns True if a line begins a new block."""
    return bool(_ITEM.match(line) or _KEPT.match(line))


def _filled(lines: list[str], mark: str) -> Iterator[str]:
    """Yields the words of a paragraph or an item, in lines as full as possible."""
    text = " ".join([lines[0].removeprefix(mark), *lines[1:]])
    words = list[str]()
    for word in re.findall(r"(?:`+[^`]*`+|\S)+", text):
        if words and _MARK.match(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    indent = " " * len(mark) if mark else re.match(r" *", lines[0])[0]  # type: ignore[index]
    row = (mark or indent) + words[0]
    for word in words[1:]:
        if len(row) + 1 + len(word) > MOST_IN_A_LINE:
            yield row
            row = indent + word
        else:
            row += f" {word}"
    yield row


@click.command(help=__doc__)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def main(files: tuple[Path, ...]) -> None:
    """Wrap pages in place, and print the names of changed pages."""
    for path in files or pages():
        text = path.read_text(encoding="utf-8")
        if (made := wrapped(text)) != text:
            path.write_text(made, encoding="utf-8")
            click.echo(path)


if __name__ == "__main__":
    main()
