"""At a glance: utilization, fairness, disruption and waiting in one figure each, and what changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.report.blocks import Block, Cell, Points, Score, Scores
from harness.report.material import Material
from harness.report.sections.metrics import Row, rows


class _Headline(NamedTuple):
    topic: str
    metric: str
    meaning: str
    of_resource: bool = False


_HEADLINES = (
    _Headline(
        "Utilization",
        "utilization.useful",
        "the part of the capacity that became work of finished jobs; more is better",
        of_resource=True,
    ),
    _Headline(
        "Fairness",
        "fairness.share_deviation",
        "how far queues' shares were from ideal ones; less is better",
    ),
    _Headline(
        "Disruption",
        "disruption.lost_of_allocated",
        "the part of what was allocated that preemptions threw away; less is better",
        of_resource=True,
    ),
    _Headline(
        "Waiting",
        "wait.first_start.p95",
        "95 of 100 jobs that started had waited no longer than this; less is better",
    ),
)
_IN_WORDS = {"better": "better", "worse": "worse", "same": "no clear change", "": "not comparable"}


def blocks(material: Material) -> Iterator[Block]:
    """The four figures of every run; for several runs a sentence of verdicts for each."""
    found = []
    for headline in _HEADLINES:
        resource = material.resource if headline.of_resource else ""
        row = next((row for row in rows(material, headline.metric) if row.resource == resource), None)
        if row is not None:
            found.append((headline, row))
    yield Scores([_score(material, headline, row) for headline, row in found])
    if len(material.runs) > 1:
        yield Points(
            [
                f"{name}: "
                + "; ".join(
                    f"{headline.topic.lower()} {_verdict(row.cells[place][1])}" for headline, row in found
                )
                for place, name in enumerate(material.names)
                if place
            ],
            title=f"Against {material.names[0]}",
        )


def _score(material: Material, headline: _Headline, row: Row) -> Score:
    meaning = f"{row.resource}: {headline.meaning}" if headline.of_resource else headline.meaning
    values = [(name, value, change) for name, (value, change) in zip(material.names, row.cells, strict=True)]
    return Score(headline.topic, meaning, values)


def _verdict(change: Cell) -> str:
    figure = f" ({change.text})" if change.verdict in ("better", "worse") else ""
    return f"{_IN_WORDS[change.verdict]}{figure}"
