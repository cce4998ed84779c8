"""`harness conform` compares the answers of plugins with recorded decisions of real components."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import CheckError, InputError
from harness.base.text import aligned, counted, printable
from harness.cli.context import PluginChoice, loaded_plugins
from harness.cli.screen import fold, terminal_width

if TYPE_CHECKING:
    from harness.plugins.conformance import Case, Report, Verdict

_SHOWN_CASES = 3
_SHOWN_DIFFERENCES = 8
_SHOWN_OBJECTS = 6
_WIDTH = 160

_EXAMPLES = """\b
Examples:
  harness conform kube-preempt-named.jsonl.gz
  harness conform *.jsonl.gz --component kube-scheduler/preempt --feature pdb --jobs 2
  harness conform kube-preempt-named.jsonl.gz --case kube-preempt/named/design-1
"""


@click.command(epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--component", metavar="NAME", help="Check only cases of this component.")
@click.option(
    "--feature", "features", multiple=True, metavar="TAG",
    help="Check only cases with this tag. If repeated, check only cases that have all of these tags.",
)  # fmt: skip
@click.option(
    "--case", "case_id", metavar="ID", help="Check only this case, and print all of it with an explanation."
)
@click.option(
    "--counters", is_flag=True,
    help="Also judge counters, such as numbers of cycles and attempts; without this option they are only "
    "reported.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Number of processes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def conform(
    ctx: click.Context,
    files: tuple[Path, ...],
    component: str | None,
    features: tuple[str, ...],
    case_id: str | None,
    jobs: int,
    *,
    counters: bool,
    as_json: bool,
) -> None:
    """Compare plugins with recorded decisions of the real components that they model.

    FILE contains one case per line. A case has the state of a cluster, a question, and the answer that the
    component's own code gave. The exit code is 1 if a plugin gives a different answer to any case.
    """
    from harness.plugins.conformance import check, component_of, judge, read_cases

    plugins = loaded_plugins(ctx)
    cases = read_cases(files, component=component, features=features, case=case_id)
    if case_id is not None:
        case = next(cases, None)
        if case is None:
            raise InputError(f"no case {case_id!r} in {', '.join(map(str, files))}")
        spec = component_of(case, plugins)
        verdict = judge(case, spec, counters=counters)
        explanation = spec.explain(case) if spec.explain is not None else ""
        click.echo(_whole_case(case, verdict, explanation, as_json=as_json))
        if not verdict.agrees:
            raise CheckError(f"case {case_id} differs")
        return
    choice = ctx.find_object(PluginChoice)
    blocked = choice.blocked if choice is not None else ()
    report = check(cases, plugins, jobs=jobs, block=blocked, counters=counters)
    if not report.total.cases:
        given = ["--component"] * (component is not None) + ["--feature"] * bool(features)
        if not given:
            raise InputError(f"no case in {', '.join(map(str, files))}")
        raise InputError("no case was selected", hint=f"leave out {' and '.join(given)} to select all cases")
    shown = {verdict.id: verdict for verdict in report.differing[:_SHOWN_CASES]}
    click.echo(json.dumps(_content(report), indent=2) if as_json else fold(_tables(report)))
    if not report.differing:
        return
    if not as_json:
        for case in read_cases(files, component=component, features=features):
            if case["id"] in shown:
                click.echo(fold("\n" + "\n".join(_diff(case, shown.pop(case["id"])))))
            if not shown:
                break
    raise CheckError(
        f"{len(report.differing):,} of {report.total.cases:,} cases differ",
        hint=f"--case {report.differing[0].id} shows a whole case",
    )


def _tables(report: Report) -> str:
    parts = []
    for component, total in sorted(report.components.items()):
        rows = [(component, "cases", "agree", ""), ("all", *_counts(total.cases, total.agree))]
        rows += [
            (feature, *_counts(tally.cases, tally.agree))
            for (owner, feature), tally in sorted(report.features.items())
            if owner == component
        ]
        parts.append(aligned(rows, width=terminal_width()))
        parts += [
            f"{field} differs in {counted(cases, 'case')}; it is reported, not judged (--counters judges it)"
            for (owner, field), cases in sorted(report.informative.items())
            if owner == component
        ]
    return "\n\n".join(parts)


def _counts(cases: int, agree: int) -> tuple[str, str, str]:
    share = "100 %" if agree == cases else f"{100 * agree / cases:.2f} %"
    return f"{cases:,}", f"{agree:,}", share


def _content(report: Report) -> dict[str, Any]:
    return {
        "cases": report.total.cases,
        "agree": report.total.agree,
        "components": {
            component: {
                "cases": total.cases,
                "agree": total.agree,
                "features": {
                    feature: {"cases": tally.cases, "agree": tally.agree}
                    for (owner, feature), tally in sorted(report.features.items())
                    if owner == component
                },
                "informative": {
                    field: cases
                    for (owner, field), cases in sorted(report.informative.items())
                    if owner == component
                },
            }
            for component, total in sorted(report.components.items())
        },
        "differing": [_verdict(verdict) for verdict in report.differing],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "id": verdict.id,
        "component": verdict.component,
        "error": verdict.error,
        "differences": [difference._asdict() for difference in verdict.differences],
    }


def _whole_case(case: Case, verdict: Verdict, explanation: str, *, as_json: bool) -> str:
    if as_json:
        return json.dumps({"case": case, **_verdict(verdict), "explanation": explanation}, indent=2)
    lines = [printable(line) for line in json.dumps(case, indent=2).split("\n")]
    lines += ["", *(printable(line) for line in explanation.split("\n"))] if explanation else []
    lines += ["", "agrees with the component" if verdict.agrees else "differs from the component:"]
    return "\n".join([*lines, *_differing_fields(verdict, len(verdict.differences))])


def _diff(case: Case, verdict: Verdict) -> list[str]:
    lines = [f"{verdict.id}  [{', '.join(verdict.features)}]"]
    lines += _differing_fields(verdict, _SHOWN_DIFFERENCES)
    names = set(_names([verdict.differences[:_SHOWN_DIFFERENCES]]))
    about = [item for item in case["objects"] if item.get("metadata", {}).get("name") in names]
    lines += [f"  {_clipped(item.get('kind', ''), item)}" for item in about[:_SHOWN_OBJECTS]]
    return lines


def _differing_fields(verdict: Verdict, limit: int) -> list[str]:
    if verdict.error:
        return [f"  no answer: {printable(verdict.error)}"]
    lines = []
    for path, expected, got in verdict.differences[:limit]:
        lines += [f"  {path}", f"    expected {_clipped('', expected)}", f"    got      {_clipped('', got)}"]
    left = len(verdict.differences) - limit
    return [*lines, f"  … and {left:,} more"] if left > 0 else lines


def _names(value: Any) -> Iterator[str]:
    """Yields the strings in a value that may be object names, without their namespaces."""
    if isinstance(value, str):
        yield value.rpartition("/")[2]
        yield from value.replace("[", ".").split(".")
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _names(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _names(inner)


def _clipped(label: str, value: Any) -> str:
    text = printable(f"{label} {json.dumps(value, ensure_ascii=False, default=str)}".strip())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
