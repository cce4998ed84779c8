"""JSON text that people read."""

from __future__ import annotations

import json

import pytest

from harness.base.json_text import indented_json


def test_objects_have_a_line_per_field_and_lists_a_line_per_item() -> None:
    content = {"a": {"b": [{"c": [1, None]}, "ä"], "d": {}, "e": []}, "f": True}
    text = indented_json(content)
    assert json.loads(text) == content
    assert text.split("\n") == [
        "{",
        '  "a": {',
        '    "b": [',
        '      {"c": [1, null]},',
        '      "\\u00e4"',
        "    ],",
        '    "d": {},',
        '    "e": []',
        "  },",
        '  "f": true',
        "}",
    ]


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented_json({"a": [float("nan")]})
