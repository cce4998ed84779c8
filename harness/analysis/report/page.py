"""Writes a report as an HTML page that needs no network. It contains a script only on request.

All text is escaped, and control characters are removed with `harness.base.text.printable`. The security
policy of the page forbids all external content.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from harness.analysis.report import drawing, palette
from harness.analysis.report.blocks import Block, Cell, Code, Figure, Key, Points, Score, Scores, Table, Text
from harness.analysis.report.report import Chapter, Report
from harness.base.text import printable
from harness.plugins.section import named

_WORDS = {
    "better": "better",
    "worse": "worse",
    "same": "no clear change",
    "equal": "equal",
    "open": "not judged",
}
_BAR = 80

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(report: Report, *, interactive: bool = False) -> str:
    """Writes a report as an HTML page.

    Raises:
        InputError: the packages that draw charts are not installed.
        PluginError: a plugin's section cannot be written.
    """
    blocks = [block for chapter in report.chapters for block in chapter.blocks]
    if any(isinstance(block, Figure) for block in blocks):
        drawing.check_installed()
    prose = any(isinstance(block, Table) and block.prose for block in blocks)
    writer = _Writer()
    chapters = "\n".join(writer.chapter(chapter) for chapter in report.chapters)
    script, policy = "", _POLICY
    if interactive:
        script, allowed = _script(writer.figures)
        policy += f"; script-src {allowed}"
    contents = "".join(
        f'<li><a href="#{_slug(chapter.name)}">{_text(chapter.title)}</a></li>' for chapter in report.chapters
    )
    return Template(_resource("page.html")).substitute(
        policy=escape(policy),
        title=_text(report.title),
        summary=_text(report.summary),
        style=_resource("page.css") + (_resource("prose.css") if prose else "") + _tones(),
        contents=contents,
        chapters=chapters,
        script=script,
    )


class _Writer:
    def __init__(self) -> None:
        self.figures: list[Figure] = []

    def chapter(self, chapter: Chapter) -> str:
        name = _slug(chapter.name)
        with named(chapter.name, chapter.owner):
            body = "\n".join(self._block(block) for block in chapter.blocks)
        return (
            f'<section id="{name}" aria-labelledby="{name}-title">'
            f'<h2 id="{name}-title">{_text(chapter.title)}</h2>\n{body}\n</section>'
        )

    def _block(self, block: Block) -> str:
        match block:
            case Text(text, lead):
                return f'<p class="lead">{_prose(text)}</p>' if lead else f"<p>{_prose(text)}</p>"
            case Points(items, title):
                head = f"<h3>{_text(title)}</h3>" if title else ""
                return head + "<ul>" + "".join(f"<li>{_prose(item)}</li>" for item in items) + "</ul>"
            case Code(text, folded):
                # `printable` replaces control characters, which include line breaks.
                lines = "\n".join(_text(line) for line in text.split("\n"))
                made = f'<pre tabindex="0"><code>{lines}</code></pre>'
                return f"<details><summary>{_text(folded)}</summary>{made}</details>" if folded else made
            case Table():
                return _table(block)
            case Scores(scores):
                return '<div class="scores">' + "".join(map(_score, scores)) + "</div>"
            case Figure():
                return self._figure(block)

    def _figure(self, figure: Figure) -> str:
        self.figures.append(figure)
        name = f"figure-{len(self.figures)}"
        label = escape(printable(f"{figure.title}. {figure.words}"))
        drawn = "".join(
            f'<div class="{kind}">{_hidden(drawing.svg(figure, width))}</div>'
            for kind, width in (("wide", drawing.WIDE), ("narrow", drawing.NARROW))
        )
        return (
            f'<figure id="{name}"><figcaption>{_text(figure.title)}</figcaption>{_legend(figure.keys)}'
            f'<div class="chart" role="img" aria-label="{label}">{drawn}</div>'
            + (f'<p class="note">{_text(figure.note)}</p>' if figure.note else "")
            + f"<details><summary>In words</summary><p>{_text(figure.words)}</p></details></figure>"
        )


def _text(text: str) -> str:
    return escape(printable(text))


def _prose(text: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", _text(text))


def _slug(name: str) -> str:
    return escape("-".join(printable(name).split()))


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in table.head)
    body = "".join(
        f'<tr><th scope="row">{_text(_plain(row[0]))}</th>' + "".join(map(_cell, row[1:])) + "</tr>"
        for row in table.rows
    )
    caption = _text(table.caption)
    kind = "table prose" if table.prose else "table"
    title = "" if table.folded else f"<caption><span>{caption}</span></caption>"
    made = (
        f'<div class="{kind}" role="region" aria-label="{caption}" tabindex="0">'
        f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    return f"<details><summary>{caption}</summary>{made}</details>" if table.folded else made


def _cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return f"<td>{_text(cell)}</td>"
    kind = cell.verdict if cell.bar is None else f"{cell.verdict} barred".lstrip()
    return f'<td class="{kind}">{_judged(cell)}{_bar(cell.bar)}</td>'


def _bar(length: float | None) -> str:
    if length is None:
        return ""
    end = _BAR / 2 * (1 + max(-1.0, min(1.0, length)))
    low, high = sorted((_BAR / 2, end))
    return (
        f'<svg class="bar" width="{_BAR}" height="9" aria-hidden="true">'
        f'<path d="M{low:.1f},1H{high:.1f}V8H{low:.1f}Z"/><path class="middle" d="M{_BAR / 2:g},0V9"/></svg>'
    )


def _judged(cell: Cell) -> str:
    """Returns a cell with a sign for sighted readers and a word for screen readers."""
    text = _text(cell.text)
    if cell.sign:
        text += f' <span aria-hidden="true">{_text(cell.sign)}</span>'
    if cell.verdict:
        text += f'<span class="unseen"> {_WORDS[cell.verdict]}</span>'
    return text


def _plain(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def _score(score: Score) -> str:
    values = "".join(
        f'<div><dt>{_text(name)}</dt><dd><span class="value">{_text(value)}</span>'
        f' <span class="{change.verdict}">{_judged(change)}</span></dd></div>'
        for name, value, change in score.values
    )
    return (
        f'<div class="score"><h3>{_text(score.topic)}</h3><dl>{values}</dl>'
        f'<p class="note">{_text(score.meaning)}</p></div>'
    )


def _legend(keys: Sequence[Key]) -> str:
    if not keys:
        return ""
    items = "".join(f"<li>{_swatch(key)}{_text(key.name)}</li>" for key in keys)
    return f'<ul class="keys">{items}</ul>'


def _swatch(key: Key) -> str:
    if key.line:
        dash = f' stroke-dasharray="{",".join(map(str, key.dash))}"' if key.dash else ""
        drawn = f'<path d="M0,5h26" stroke="{escape(key.colour)}" stroke-width="2.5"{dash}/>'
        return f'<svg width="26" height="10" aria-hidden="true">{drawn}</svg>'
    drawn = f'<path d="M0,0h12v12h-12Z" fill="{escape(key.colour)}"/>'
    return f'<svg width="12" height="12" aria-hidden="true">{drawn}</svg>'


def _hidden(svg: str) -> str:
    """Hides a chart from screen readers, which read the chart's description instead."""
    return svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def _tones() -> str:
    def variables(dark: bool) -> str:
        return "".join(
            f"--tone-{number}:{tone.dark if dark else tone.light};" for number, tone in enumerate(palette.ALL)
        )

    rules = "".join(
        f'svg [{part}="{tone.light}"]{{{part}:var(--tone-{number})}}'
        for part in ("fill", "stroke")
        for number, tone in enumerate(palette.ALL)
    )
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{variables(dark=True)}}}}}"
    return f":root{{{variables(dark=False)}}}\n{dark}\n{rules}\n"


def _script(figures: Sequence[Figure]) -> tuple[str, str]:
    """Returns the script that makes charts interactive, and the policy entry that permits it."""
    import vl_convert

    code = vl_convert.javascript_bundle(_resource("page.js")).replace("</script", "<\\/script")
    specs = json.dumps([drawing.live(figure) for figure in figures], sort_keys=True, separators=(",", ":"))
    digest = b64encode(sha256(code.encode()).digest()).decode()
    data = specs.replace("<", "\\u003c")
    return (
        f'<script type="application/json" id="charts">{data}</script>\n<script>{code}</script>',
        f"'sha256-{digest}'",
    )


def _resource(name: str) -> str:
    return files("harness.analysis.report").joinpath(name).read_text(encoding="utf-8")
