"""Converts the pod sets of a job to text and back, for jobs with pods that have different requests.

The text is a JSON list in the order of pod numbers. Each pod set has its `name`, its number of `pods`, and
the `requests` of each pod, without requests of 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.base.json_text import parse_json


class Part(NamedTuple):
    """A pod set of a job."""

    name: str
    pods: int
    requests: Mapping[str, int]


def text_of(parts: Sequence[Part]) -> str | None:
    """Returns the text for the pod sets of a job, or None if all of its pods have equal requests."""
    asked = [{name: amount for name, amount in sorted(part.requests.items()) if amount} for part in parts]
    if all(each == asked[0] for each in asked):
        return None
    rows = [
        {"name": part.name, "pods": part.pods, "requests": each}
        for part, each in zip(parts, asked, strict=True)
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def parts_of(text: str) -> list[Part]:
    """Parse the text that `text_of` wrote."""
    return [Part(row["name"], row["pods"], row["requests"]) for row in parse_json(text)]
