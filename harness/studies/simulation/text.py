"""Writes a simulation as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from harness.base.grouping import grouped
from harness.base.text import aligned, counted, first_of, folded
from harness.base.units import format_duration
from harness.studies.simulation.answer import NEVER, STARTS, Answer, Simulation

_ROWS = 20
_NAMED = 3


def text(simulation: Simulation, width: int | None = None, *, rows: int | None = _ROWS) -> str:
    """Returns a simulation as text for a terminal.

    A `width` of None means no limit. Each table has at most `rows` rows, or all rows if `rows` is None.
    """
    lines = [*folded([_head(simulation)], width), ""]
    if simulation.answers:
        lines += [_table(_HEAD, [_row(each) for each in simulation.answers], rows, width), ""]
    if simulation.named:
        for answer in simulation.answers:
            lines += [*_about(answer, width, rows), ""]
    else:
        lines += _reasons(simulation.answers, width, rows)
        for answer in simulation.answers:
            if answer.changes is not None:
                lines += [*_changes(answer, width), ""]
    lines += folded([f"- {note}" for note in simulation.notes], width)
    return "\n".join(lines).rstrip()


_HEAD = ["job", "queue", "now", "waits for", "flavors", "nodes", "preempts"]


def _head(simulation: Simulation) -> str:
    at = "" if simulation.now is None else f" at {simulation.now}"
    starts = sum(each.verdict == STARTS for each in simulation.answers)
    asked = counted(len(simulation.answers), "submitted job" if simulation.submitted else "waiting job")
    return f"{starts:,} of {asked} would start now{at and f',{at}'}"


def _row(answer: Answer) -> list[str]:
    flavors = dict.fromkeys(flavor for chosen in answer.flavors.values() for flavor in chosen.values())
    victims = f"{len(answer.victims):,}" if answer.victims else ""
    return [
        _name(answer.name),
        answer.queue,
        answer.verdict,
        answer.waits_for,
        first_of(list(flavors), _NAMED),
        first_of([f"{node} ({count})" for node, count in answer.nodes.items()], _NAMED),
        victims,
    ]


def _about(answer: Answer, width: int | None, rows: int | None) -> Iterator[str]:
    name = _name(answer.name)
    can = {NEVER: "can never start", STARTS: "starts now"}.get(answer.verdict, answer.verdict)
    told = answer.why if answer.why.startswith("waits ") else f"{can}: {answer.why}"
    yield from folded([f"{name} {told}"], width)
    places = {name: each["domains"] for name, each in answer.topology.items()}
    for pod_set, domains in places.items():
        named = [f"{'/'.join(each['values'])} ({each['count']})" for each in domains]
        listed = ", ".join(named) or "none"
        yield from folded([f"domains of pod set {pod_set}: {listed}"], width)
    if answer.victims:
        head = ["preempted for it", "queue", "priority", "reason", "had run", "loses"]
        table = [
            [
                _name(each.name),
                each.queue,
                f"{each.priority:,}",
                each.reason,
                "" if each.ran is None else format_duration(each.ran),
                format_duration(each.lost),
            ]
            for each in answer.victims
        ]
        yield ""
        yield _table(head, table, rows, width)
    if answer.moves:
        yield ""
        moves = [[_name(each.name), each.queue, each.what] for each in answer.moves]
        yield _table(["in the same cycles", "queue", "what"], moves, rows, width)
    if answer.changes is not None:
        yield ""
        yield from _changes(answer, width)


def _changes(answer: Answer, width: int | None) -> Iterator[str]:
    name = _name(answer.name)
    if not answer.changes:
        yield from folded([f"{name}: {answer.no_change}"], width)
        return
    head = f"{name} would start with any one of these; harness found no smaller change of the same kind:"
    yield from folded([head], width)
    for change in answer.changes:
        after = (
            f", when {first_of(change.victims, _NAMED)} {'is' if len(change.victims) == 1 else 'are'} gone"
            if change.victims
            else ""
        )
        yield from folded([f"- {change.text}{after}"], width)


def _reasons(answers: Iterable[Answer], width: int | None, rows: int | None) -> Iterator[str]:
    """Yields the reasons why jobs wait, each with the jobs to which the reason applies."""
    reasons = grouped((answer.why, _name(answer.name)) for answer in answers if answer.verdict != STARTS)
    for number, (why, names) in enumerate(reasons.items()):
        if number == rows:
            yield f"… and {len(reasons) - number:,} more reasons (--all shows them)"
            break
        yield from folded([f"{first_of(names, _NAMED)}: {why}"], width)
    if reasons:
        yield ""


def _table(head: list[str], table: list[list[str]], rows: int | None, width: int | None) -> str:
    shown = table if rows is None else table[:rows]
    filled = [at for at, title in enumerate(head) if at == 0 or any(row[at] for row in shown)]
    cells = [[row[at] for at in filled] for row in [head, *shown]]
    names: Mapping[int, Iterable[str]] = {0: [row[0] for row in table]}
    made = aligned(cells, left=range(len(filled)), names=names, width=width)
    more = len(table) - len(shown)
    return f"{made}\n… and {more:,} more (--all shows them)" if more else made


def _name(name: str) -> str:
    return name.removeprefix("default/")
