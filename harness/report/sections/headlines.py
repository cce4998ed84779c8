"""At a glance: utilization, fairness, disruption and waiting in one figure each, and what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.report.blocks import Block, Cell, Points, Score, Scores
from harness.report.material import Material
from harness.report.sections.metrics import cells


class _Headline(NamedTuple):
    topic: str
    metric: str
    meaning: str
    of_resource: bool = False


_HEADLINES = (
    _Headline(
        "Utilization",
        "goodput.of_capacity",
        "the part of the capacity that became work of finished jobs; more is better",
        of_resource=True,
    ),
    _Headline(
        "Fairness",
        "fairness.share_deviation",
        "how far shares of quotas were from ideal ones; less is better",
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
        "95 of 100 jobs waited no longer than this for their start; less is better",
    ),
)
_IN_WORDS = {
    "better": "better",
    "worse": "worse",
    "same": "no clear change",
    "equal": "equal",
    "open": "not judged from one replay",
    "": "not comparable",
}


def blocks(material: Material) -> Iterator[Block]:
    """Four figures of every run; for several runs what differs, and a sentence of verdicts for each.

    Before them stands which replays were ended because they went nowhere, and which metrics failed.
    """
    ended = [
        f"{name}: {run.stopped.told()}"
        for name, run in zip(material.names, material.runs, strict=True)
        if run.stopped is not None
    ]
    if ended:
        yield Points(ended, title="Ended before the end")
    failed = [
        f"{name}: {sentence}"
        for name, run in zip(material.names, material.runs, strict=True)
        for sentence in run.unmeasured.values()
    ]
    if failed:
        yield Points(failed, title="Not measured")
    for group in material.comparison.head.groups:
        yield Points(list(group.sentences), title=f"Different in {', '.join(group.names)}")
    lines = {(line.measured.metric, line.measured.resource): line for line in material.table}
    about = [(each, (each.metric, material.resource if each.of_resource else "")) for each in _HEADLINES]
    found = [(headline, cells(lines[key])) for headline, key in about if key in lines]
    yield Scores([_score(material, headline, pairs) for headline, pairs in found])
    if len(material.runs) > 1:
        yield Points(
            [
                f"{name}: "
                + "; ".join(
                    f"{headline.topic.lower()} {_verdict(pairs[place][1])}" for headline, pairs in found
                )
                for place, name in enumerate(material.names)
                if place
            ],
            title=f"Against {material.names[0]}",
        )


def _score(material: Material, headline: _Headline, pairs: Sequence[tuple[str, Cell]]) -> Score:
    meaning = f"{material.resource}: {headline.meaning}" if headline.of_resource else headline.meaning
    values = [(name, *pair) for name, pair in zip(material.names, pairs, strict=True)]
    return Score(headline.topic, meaning, values)


def _verdict(change: Cell) -> str:
    figure = f" ({change.text})" if change.verdict in ("better", "worse", "open") and change.text else ""
    return f"{_IN_WORDS[change.verdict]}{figure}"
