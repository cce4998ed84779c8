"""Converts altair charts into SVG, or into specifications for the browser."""

from __future__ import annotations

import json
import re
from typing import Any

from harness.analysis.report import palette
from harness.analysis.report.blocks import Figure
from harness.base.errors import InputError

WIDE, NARROW = 900, 350
"""The widths in which figures are drawn: for desktops and paper, and for phones."""

_PATH = re.compile(r'(<path\b[^>]*?\bd=")([^"]*)')
_DESCRIBED = re.compile(r'<(path|rect)\b([^>]*?) aria-label="([^"]*)"([^>]*?)(?:/>|></\1>)')
_PAIR = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")
_OWN = re.compile(
    r'"(__proto__|__(?:define|lookup)[GS]etter__|constructor|hasOwnProperty|isPrototypeOf|'
    r'propertyIsEnumerable|to(?:Locale)?String|valueOf)"(?!:)'
)
"""Matches JSON strings that equal the name of a property of every JavaScript object."""
_NUMBER = re.compile(r"-?\d+\.\d+")

_CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "sans-serif",
    "view": {"stroke": None},
    # The page describes each chart as a whole, so its parts need no descriptions.
    "mark": {"aria": False},
    "axis": {
        "aria": False,
        "domainColor": palette.GRID.light,
        "gridColor": palette.GRID.light,
        "tickColor": palette.GRID.light,
        "labelColor": palette.INK.light,
        "titleColor": palette.INK.light,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    },
    "title": {"aria": False, "color": palette.INK.light, "fontSize": 12, "fontWeight": 600, "offset": 6},
}


def check_installed() -> None:
    """Checks that charts can be drawn.

    Raises:
        InputError: altair or vl-convert is missing.
    """
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"the charts of a report need altair and vl-convert-python, but {error.name} is not installed",
            hint="pip install 'harness-replay[report]'; --format markdown needs neither",
        ) from error


def specification(figure: Figure, width: int) -> dict[str, Any]:
    """Returns a figure as a Vega-Lite specification."""
    import altair as alt

    # Charts are not validated here, because validation takes a fifth of the time and tests cover it.
    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = figure.draw(width).to_dict(validate=False)
    own = spec.get("config", {})
    spec["config"] = {
        **own,
        **{
            key: {**value, **own.get(key, {})} if isinstance(value, dict) else value
            for key, value in _CONFIG.items()
        },
    }
    return _drawable(spec)


def _drawable(spec: dict[str, Any]) -> dict[str, Any]:
    """Changes the texts of a specification so that Vega draws them correctly.

    Characters that JavaScript counts as two are replaced by the replacement character, because Vega may cut a
    long text between the two halves of such a character. If a text equals the name of a property that every
    JavaScript object has, such as `constructor`, a zero-width space is added. Without the space, Vega would
    mistake the text for one that it has seen before.
    """
    text = json.dumps(spec)
    replaced = _OWN.sub(r'"\1\\u200b"', _PAIR.sub(r"\\ufffd", text))
    if replaced == text:
        return spec
    found: dict[str, Any] = json.loads(replaced)
    return found


def live(figure: Figure) -> dict[str, Any]:
    """Returns a figure as the specification of an interactive chart.

    The chart shows the values under the pointer, and readers can move and zoom the horizontal axis.
    """
    spec = specification(figure, WIDE)
    spec["config"]["mark"] |= {"tooltip": True}
    spec["config"]["timeFormat"] = "%Y-%m-%d %H:%M:%S"  # for tooltips, not for axes
    views = []
    for number, panel in enumerate(spec.get("vconcat") or spec.get("concat") or [spec]):
        first = panel["layer"][0] if "layer" in panel else panel
        across = first.get("encoding", {}).get("x", {}).get("type")
        if "mark" in first and across in ("quantitative", "temporal"):
            first["name"] = f"panel_{number}"
            views.append(first["name"])
    # Without the shift key, the wheel scrolls the page.
    move = {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"}
    if views:
        spec["params"] = [{"name": "move", "select": move, "bind": "scales", "views": views}]
    for rows in spec.get("datasets", {}).values():
        for row in rows:
            row.update((name, float(f"{value:.6g}")) for name, value in row.items() if type(value) is float)
    return spec


def svg(figure: Figure, width: int) -> str:
    """Returns a figure as SVG, in which the descriptions of marks are tooltips."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(specification(figure, width))
    drawn = _DESCRIBED.sub(r"<\1\2\4><title>\3</title></\1>", drawn)
    return _PATH.sub(lambda path: path[1] + _NUMBER.sub(_shorter, path[2]), drawn)


def _shorter(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")
