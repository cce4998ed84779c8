"""Writes a forecast as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.base.text import aligned, counted, folded
from harness.base.units import format_duration
from harness.runs.questions import AWAY, cannot_start
from harness.studies.forecasting.forecast import Forecast, Risk, Start
from harness.studies.forecasting.paired import By, Displaced, Shift
from harness.studies.forecasting.past import Past
from harness.studies.forecasting.scores import CALIBRATED, REGRESSION, WEEK, Coverage

_ROWS = 20


def text(forecast: Forecast, width: int | None = None, *, rows: int | None = _ROWS) -> str:
    """Returns a forecast as text for a terminal.

    A `width` of None means no limit. Each table has at most `rows` rows, or all rows if `rows` is None.
    """
    parts = [*folded([_trust(forecast.past), _head(forecast)], width), ""]
    for name in forecast.others:
        parts += [*_of_cluster(forecast, name, width, rows), ""]
    if forecast.submitted is not None:
        parts += [*_of_job(forecast, forecast.submitted, width, rows), ""]
    for name, other in forecast.others.items():
        if other.submitted is not None:
            parts += [*_of_job(other, other.submitted, width, rows, f"with {name}, "), ""]
    parts += [_workloads(forecast, rows, _names(forecast), width), ""]
    if not forecast.risks:
        job = forecast.submitted
        without = f"without {_name(job.name)}, " if job is not None else ""
        parts += [f"{without}no workload is preempted in any future", ""]
    parts += folded([f"- {note}" for note in _notes(forecast)], width)
    return "\n".join(parts).rstrip()


_WORKLOADS = ["workload", "queue", "now", "waited", "p10", "p50", "p90", "preempted", "by"]
_INTERVALS = (_WORKLOADS.index("p10"), _WORKLOADS.index("p90"))


def _workloads(
    forecast: Forecast, rows: int | None, names: Mapping[int, Sequence[str]], width: int | None
) -> str:
    """Returns a table of the waiting workloads, and of running workloads that are preempted in any future."""
    risks = {risk.place: risk for risk in forecast.risks}
    table = [_start(each, risks.pop(each.place, None)) for each in forecast.starts]
    asked = forecast.world.names
    table += [
        [_name(risk.name), risk.queue, "runs" if risk.running else "waits", *[""] * 4, *_risk(risk)]
        for risk in risks.values()
        if not asked
    ]
    known = any(row[at] for row in table for at in _INTERVALS)
    columns = [at for at in range(len(_WORKLOADS)) if known or at not in _INTERVALS]
    head, *cells = ([row[at] for at in columns] for row in [_WORKLOADS, *table])
    return _table(head, cells, rows, names, width, left=(0, 1, 2, len(columns) - 1))


def verdict(held: Coverage, width: int | None = None) -> str:
    """Returns the accuracy of forecasts as text for a terminal. A `width` of None means no limit."""
    size = "unknown" if held.width is None else format_duration(round(held.width))
    error = "unknown" if held.error is None else format_duration(round(held.error))
    sentences = [
        f"{held.covered:.1%} of {held.starts:,} starts lie between their p10 and their p90, as 80 % should",
        f"{held.before:.1%} come before, {held.after:.1%} after",
        f"mean over {counted(held.moments, 'moment')}: {held.by_moment:.1%}",
        f"median width of these intervals {size}, median error of the p50 {error}",
    ]
    head = [
        "forecast", "with interval", "within", "moments", "width", "interval score", "pinball", "p50 off by",
    ]  # fmt: skip
    rows = [_scores(name, each) for name, each in {"futures": held, **held.others}.items()]
    return "\n".join([*folded(sentences, width), "", aligned([head, *rows], left=(0,), width=width)])


def _scores(name: str, held: Coverage) -> list[str]:
    printed = f"{held.printed:.0%}"
    if not held.starts:
        return [name, printed, *[""] * 6]
    return [
        name,
        printed,
        f"{held.covered:.1%}",
        f"{held.by_moment:.1%}",
        "later" if held.width is None else format_duration(round(held.width)),
        format_duration(round(held.interval_score)),
        format_duration(round(held.pinball)),
        f"{held.factor:.1f} x",
    ]


def _trust(past: Past) -> str:
    held = past.held
    if past.lacks or held is None:
        moments = counted(past.calibration.moments, "moment")
        few = f"intervals use {moments} of this history, too few to say how often starts are within them"
        return past.lacks or few
    calibrated = held.others[CALIBRATED]
    factors = ", ".join(f"{held.others[name].factor:.1f} by the {name}" for name in (WEEK, REGRESSION))
    return (
        f"at {counted(calibrated.moments, 'moment')} of this history {calibrated.covered:.0%} of "
        f"{counted(calibrated.starts, 'start')} came between p10 and p90, as 80 % should; the p50 was off by "
        f"a factor of {held.factor:.1f} ({factors})"
    )


def _head(forecast: Forecast) -> str:
    world = forecast.world
    waiting, running = len(forecast.starts), len(world.now.running)
    at, futures = forecast.time(0), len(forecast.futures)
    wait, run = "waits" if waiting == 1 else "wait", "runs" if running == 1 else "run"
    return (
        f"{counted(waiting, 'workload')} {wait} and {running:,} {run}{'' if at is None else f' at {at}'}; "
        f"{counted(futures, 'simulated future')} of at most {format_duration(world.settings.horizon)}; "
        "starts are times from now"
    )


def _start(start: Start, risk: Risk | None) -> list[str]:
    waited = "" if start.waited is None else format_duration(start.waited)
    reason = "waits" if start.reason is None else start.reason.waits_for
    if start.never is not None:
        now, start_at = (reason, "unknown") if start.never.where == AWAY else ("never", "never")
        return [_name(start.name), start.queue, now, waited, "", start_at, "", "", ""]
    row = [_name(start.name), start.queue, reason, waited]
    low, high = ("", "") if start.interval is None else map(_or_later, start.interval.times[::2])
    return [*row, low, _or_later(start.middle), high, *(["0%", ""] if risk is None else _risk(risk))]


def _risk(risk: Risk) -> list[str]:
    return [f"{risk.share:.0%}", _by(risk.by)]


def _of_cluster(forecast: Forecast, name: str, width: int | None, rows: int | None) -> Iterator[str]:
    shifts = forecast.shifts[name]
    changed = [each for each in shifts if each.changed]
    if not changed:
        yield from folded([f"with {name}: no start and no preemption changes"], width)
        return
    first, last = [f"with {name}", "queue", "now", "p50", "was"], ["by (median)", "preempted", "was"]
    head = [*first, "earlier", "later", *last]
    yield _table(head, list(map(_shift, changed)), rows, _names(forecast), width, left=(0, 1, 2))
    pairs = zip(forecast.futures, forecast.others[name].futures, strict=True)
    if any(one.end != two.end for one, two in pairs):
        pair = "in each pair of futures, preemptions count only up to the end of the shorter future"
        yield from folded([pair], width)
    same = sum(not each.running for each in shifts) - sum(not each.running for each in changed)
    if same:
        yield from folded([f"the other waiting workloads ({same:,}) start as before"], width)


def _shift(row: Shift) -> list[str]:
    cells = [_name(row.name), row.queue, "runs" if row.running else "waits"]
    if row.running:
        cells += [""] * 5
    else:
        by = "" if row.shift is None else f"{'-' if row.shift < 0 else '+'}{_time(abs(row.shift))}"
        cells += [
            *(_or_later(of[1]) for of in (row.after, row.before)),
            f"{row.earlier:.0%}",
            f"{row.later:.0%}",
            by,
        ]
    return [*cells, f"{row.preempted_after:.0%}", f"{row.preempted_before:.0%}"]


def _by(by: Sequence[By]) -> str:
    if not by:
        return ""
    more = f" and {len(by) - 1:,} more" if len(by) > 1 else ""
    return f"{_name(by[0].name)} ({by[0].share:.0%}){more}"


def _of_job(
    forecast: Forecast, job: Start, width: int | None, rows: int | None, where: str = ""
) -> Iterator[str]:
    middle = _or_later(job.middle)
    starts = middle if middle in ("now", "later") else f"in {middle}"
    sentence = f"{where}{_name(job.name)} would start {starts}"
    if job.interval is not None:
        low, high = map(_or_later, job.interval.times[::2])
        sentence += f" (p10 {low}, p90 {high})"
    if job.unstarted:
        sentence += f", but not before the horizon in {job.unstarted:.0%} of the futures"
    displaced = forecast.displaced
    if not displaced:
        sentence += "; it displaces no workload"
    yield from folded([sentence], width)
    if displaced:
        yield ""
        head = [
            "displaced by it", "queue", "now", "preempts", "or others", "later", "by (median)",
            "preempted by",
        ]  # fmt: skip
        table = [_displaced(each) for each in displaced]
        yield _table(head, table, rows, _names(forecast), width, left=(0, 1, 7))


def _displaced(row: Displaced) -> list[str]:
    return [
        _name(row.name),
        row.queue,
        "runs" if row.running else "waits",
        f"{row.preempted:.0%}",
        f"{row.preempted_more:.0%}",
        "" if row.running else f"{row.later:.0%}",
        "" if row.delay is None else _time(row.delay),
        _by(row.by),
    ]


def _notes(forecast: Forecast) -> Iterator[str]:
    yield from forecast.notes
    waiting, most = len(forecast.world.now.waiting), forecast.past.most
    if not forecast.past.lacks and waiting > most:
        yield (
            f"{waiting:,} workloads wait now, and at most {most:,} waited at any moment of the past: "
            "load has grown, and intervals may be too narrow"
        )
    grown = forecast.past.grown
    if not forecast.past.lacks and grown is not None:
        yield (
            f"the last week of the history requested {grown.share:.0%} more {grown.resource} than any week "
            "before it: load grows, and intervals may be too narrow"
        )
    drawn = ", ".join(f"{source} ({count:,})" for source, count in forecast.drawn_from.items())
    yield f"run times are drawn from {drawn}"
    if forecast.unstarted:
        yield (
            f"{forecast.unstarted:.1%} of the starts did not happen within "
            f"{format_duration(forecast.world.settings.horizon)}; --horizon sets the length of futures"
        )
    for start in forecast.starts:
        if start.never is not None:
            yield f"{start.name} {cannot_start(start.never)}"
    if early := forecast.ended_early:
        yield f"{counted(len(early), 'future')} ended early: {early[0].stopped}"


def _table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    most: int | None,
    names: Mapping[int, Sequence[str]],
    width: int | None,
    left: tuple[int, ...] = (0, 1),
) -> str:
    shown = rows if most is None else rows[:most]
    table = aligned([head, *shown], left=left, names=names, width=width)
    if len(shown) < len(rows):
        table += f"\nand {len(rows) - len(shown):,} more (--all shows them)"
    return table


def _names(forecast: Forecast) -> dict[int, list[str]]:
    """Returns all names of workloads and queues by column. In a table, shortened names remain distinct."""
    shifts = [each for several in forecast.shifts.values() for each in several]
    every = [*forecast.starts, *forecast.risks, *(forecast.displaced or ()), *shifts]
    return {0: [_name(each.name) for each in every], 1: [each.queue for each in every]}


def _or_later(time: float | None) -> str:
    return "later" if time is None else _time(time)


def _time(time: float) -> str:
    return "now" if time < 1 else format_duration(round(time))


def _name(name: str) -> str:
    return name.removeprefix("default/")
