"""`harness compare`: what compares, what is refused and why, and which lines are shown."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import harness as package

RunFolder = Callable[..., Path]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where runs without options are kept for all tests."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def replayed(harness: Callable, folder: Path, write_trace: Callable[..., Path], kept: Path) -> RunFolder:
    """Replays a small trace, unless another test has, and answers the run's folder."""

    def run(
        label: str, *options: object, jobs: int = 12, name: str = "t.parquet", output: str = "results"
    ) -> Path:
        path = folder / name
        if not path.exists():
            rows = (
                {"submit_time": number, "queue": f"team-{number % 3}", "request.cpu": 1000 * (1 + number % 4)}
                for number in range(jobs)
            )
            write_trace(*rows, name=name).rename(path)
        called = label if label == "none" else f"none@{label}"
        before = None if options else kept / f"{called} {jobs} {name}"
        place = folder / output / path.stem
        if before is not None and before.exists():
            shutil.copytree(before, place, dirs_exist_ok=True)
        else:
            ended = harness("replay", name, "-p", f"none@{label}", "-q", "-o", output, *options)
            assert ended.code == 0, ended.err
        (made,) = place.glob(f"{called}-*")
        if before is not None and not before.exists():
            shutil.copytree(made, before / made.name)
        return made.relative_to(folder)

    return run


def first_column(text: str) -> list[str]:
    """The names of a table's lines."""
    return [line.split("  ")[0] for line in text.split("\n")[2:] if line and "  " in line]


def rows(text: str) -> list[str]:
    """The metrics of a table of several runs, which stand between the rule and what signs mean."""
    lines = text.split("\n")
    rule = next(number for number, line in enumerate(lines) if line.startswith("─"))
    signs = next(number for number, line in enumerate(lines) if line.startswith("▲"))
    return [line.split()[0] for line in lines[rule + 1 : signs]]


def heading(text: str) -> list[str]:
    """The heads of a table's columns, which stand over the rule."""
    lines = text.split("\n")
    rule = next(number for number, line in enumerate(lines) if line.startswith("─"))
    return lines[rule - 1].split()


def test_the_first_run_is_the_baseline_unless_another_is(harness: Callable, replayed: RunFolder) -> None:
    """`--baseline` takes a label; all changes are against that run."""
    a, b = replayed("a"), replayed("b", "--set", "blocking=strict")
    ended = harness("compare", a, b)
    assert heading(ended.out) == ["metric", "a", "b"]
    assert "\nbaseline a (plugin none): the first of 2 runs, sorted by name as in results/t/*; " in ended.out
    assert "changes are against a\n" in ended.out
    assert (
        "\nbaseline b (plugin none): the first of 2 runs, in the given order\n"
        in harness("compare", b, a).out
    )
    ended = harness("compare", a, b, "--baseline", "b")
    assert heading(ended.out) == ["metric", "b", "a"]
    assert "\nbaseline b (plugin none): as requested\n" in ended.out
    assert "changes are against b\n" in ended.out
    ended = harness("compare", a, b, "--baseline", "aa")
    assert (ended.code, ended.err) == (2, "Error: no run is named 'aa'\nHint: did you mean 'a'?\n")


def test_patterns_choose_metrics_and_scopes_choose_parts(harness: Callable, replayed: RunFolder) -> None:
    """`--metric` takes names and patterns, `--scope` all parts of a kind, or one."""
    run = replayed("a")
    lines = first_column(harness("compare", run, "--metric", "wait.total.*", "--metric", "makespan").out)
    assert lines == [
        *(f"wait.total.{each}" for each in ("mean", "p50", "p90", "p95", "p99", "max")),
        "makespan",
    ]
    lines = first_column(harness("compare", run, "--metric", "wait.total.mean", "--scope", "queue").out)
    assert lines == [f"wait.total.mean {{queue=team-{number}}}" for number in range(3)]
    lines = first_column(
        harness("compare", run, "--metric", "wait.total.mean", "--scope", "queue=team-1").out
    )
    assert lines == ["wait.total.mean {queue=team-1}"]


@pytest.mark.parametrize(
    ("options", "error", "hint"),
    [
        (
            ["--metric", "wait.totl.mean"],
            "no run has a metric 'wait.totl.mean'",
            "did you mean 'wait.total.mean'?",
        ),
        (["--metric", "zz*"], "no run has a metric 'zz*'", "there is: "),
        (["--scope", "queu"], "for scope 'queu'", "did you mean 'queue'?"),
        (["--scope", "queue=team-9"], "for scope 'queue=team-9'", "did you mean 'queue=team-"),
        (["--metric", "makespan", "--scope", "queue"], "nothing of makespan was measured", "there is: all"),
    ],
)
def test_what_was_not_measured_is_an_error(
    options: list[str], error: str, hint: str, harness: Callable, replayed: RunFolder
) -> None:
    """An empty table would say nothing; the message says what was probably meant."""
    ended = harness("compare", replayed("a"), *options)
    assert (ended.code, ended.out) == (2, "")
    assert error in ended.err
    assert f"Hint: {hint}" in ended.err


def test_json_holds_the_same_figures(harness: Callable, replayed: RunFolder) -> None:
    """Values by run, whatever runs are called, and the choice of metrics and scopes holds too."""
    a, b = replayed("metric"), replayed("scope", "--set", "order=fifo")
    ended = harness("compare", a, b, "--metric", "makespan", "--json")
    assert ended.err == ""
    document = json.loads(ended.out)
    (row,) = document["metrics"]
    assert (row["metric"], row["scope"], row["unit"], row["better"]) == ("makespan", "all", "s", "lower")
    assert list(row["values"]) == [run["name"] for run in document["runs"]] == [a.name, b.name]
    assert [run["label"] for run in document["runs"]] == ["metric", "scope"]


def test_runs_of_one_label_are_told_apart(harness: Callable, replayed: RunFolder) -> None:
    """By their folders' names, and if these are equal too, by their paths; never the same run twice."""
    one = replayed("a")
    other = replayed("a", "--until", "5s", output="elsewhere")
    same = replayed("a", output="again")
    assert heading(harness("compare", one, other).out) == ["metric", one.name, other.name]
    assert heading(harness("compare", one, same).out) == ["metric", str(one), str(same)]
    ended = harness("compare", one, other, one / "." / "")
    assert (ended.code, ended.err) == (2, f"Error: {one} is given twice\n")
    assert f"changes are against {other.name}" in harness("compare", one, other, "--baseline", other.name).out


def test_what_differs_between_runs_that_do_not_compare_is_said(
    harness: Callable, replayed: RunFolder
) -> None:
    """Jobs of other ids or demands: every run that does not fit, and why."""
    a = replayed("a")
    longer = replayed("longer", jobs=13, name="u.parquet")
    larger = replayed("larger", "--cluster", cluster(5, "team-0", "team-1", "team-2", name="larger.yaml"))
    faster = replayed("faster", "--scale-arrivals", "2")
    assert harness("compare", a, longer, larger, faster).code == 0
    other = replayed("other", "--window", "0s..1s", name="u.parquet")
    one = replayed("one", "--window", "5s..7s")
    ended = harness("compare", other, a, one)
    assert (ended.code, ended.out) == (2, "")
    lines = ended.err.split("\n")
    assert lines[0] == f"Error: these runs cannot be compared with {other} (1 jobs):"
    assert lines[1].startswith(
        f"  {one}: 0 of its 2 jobs are the same: none has the id of a job in the baseline; another trace: t"
    )
    assert lines[1].endswith("; --window 5s..7s, not 0s..1s")
    assert lines[2].startswith("Hint: runs can be compared if at least half of the smaller run's jobs")


def cluster(cores: int, *queues: str, name: str) -> str:
    """Manifests of ClusterQueues with so many cores each; answers their file's name."""
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": cores}]}]
    objects: list[object] = [
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "default"}}
    ]
    objects += [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": queue},
            "spec": {
                "cohortName": "all",
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            },
        }
        for queue in queues
    ]
    Path(name).write_text("\n---\n".join(map(json.dumps, objects)))
    return name


def test_different_settings_are_named_in_the_head(harness: Callable, replayed: RunFolder) -> None:
    """Runs under different loss models or limits compare, and the reader is told."""
    a, b = replayed("a"), replayed("b", "--until", "5s", "--on-preemption", "resume")
    out = harness("compare", a, b).out
    assert "\nb\n  --on-preemption restart -> resume\n  --until none -> 5s\n\nmetric" in out
    assert "a run was cut short, so all metrics cover the first 5s" in out


def test_three_plugins_of_long_names_stay_within_100_columns(
    harness: Callable, folder: Path, write_trace: Callable[..., Path]
) -> None:
    """The widest table that one normally sees can be read in a terminal of 100 columns."""
    rows = ({"submit_time": number, "request.nvidia.com/gpu": 1, "pods": 4} for number in range(9))
    write_trace(*rows).rename(folder / "gpus.parquet")
    names = ("none", "none@kueue-fairsharing", "none@elastic-quota-auto")
    ended = harness("replay", "gpus.parquet", "-q", *(part for name in names for part in ("-p", name)))
    assert ended.code == 0
    assert (
        max(len(line) for line in ended.out.split("\n") if line.startswith(("metric", "disruption"))) <= 100
    )


def test_what_to_take_and_six_lines_come_first(harness: Callable, replayed: RunFolder) -> None:
    """And how to see the others; what is not 0 of jobs that did not end is never left for later."""
    runs = replayed("a"), replayed("b", "--set", "blocking=strict")
    first, blank, *_, last = harness("compare", *runs).out.rstrip("\n").split("\n")
    assert first.startswith(("No recommendation: ", "If preempted jobs lose "))
    assert blank == ""
    assert rows(harness("compare", *runs).out) == [
        *("goodput.of_demand", "wait.first_start.p95", "delay.mean", "fairness.share_deviation"),
        *("disruption.preemptions", "disruption.lost"),
    ]
    more = len(rows(harness("compare", *runs, "--all").out)) - 6
    assert last.partition(", --notes")[0] == f"--all shows {more} more lines"
    cut = replayed("c", "--until", "3s")
    assert "jobs.unfinished" in harness("compare", cut).out


def test_four_notes_stand_below_a_table_and_notes_shows_the_others(
    harness: Callable, replayed: RunFolder
) -> None:
    """The legend comes first; without a flag it is said how many are left."""
    runs = replayed("a"), replayed("b", "--set", "blocking=strict"), replayed("c", "--until", "20s")
    brief, whole = (harness("compare", *runs, *flags).out for flags in ((), ("--notes",)))
    few, every = (each.rstrip("\n").partition("\n▲ better")[2].split("\n")[:-1] for each in (brief, whole))
    assert few == every[:4]
    hidden = len(every) - 4
    assert hidden > 0
    assert brief.rstrip("\n").endswith(f", --notes shows {hidden} more note{'s' if hidden > 1 else ''}")
    assert "--notes" not in whole


@pytest.mark.parametrize("width", [100, 80, 60, 48])
def test_no_line_is_wider_than_the_terminal(width: int, replayed: RunFolder) -> None:
    """Remarks are broken between words; where nothing else helps, metrics stand above their values."""
    runs = replayed("a-run-with-a-long-name"), replayed("b", "--set", "blocking=strict")
    for brief in (True, False):
        lines = package.compare(runs).table(width=width, brief=brief).split("\n")
        assert max(map(len, lines)) <= width


def test_a_metric_without_anything_in_the_scope_is_said(harness: Callable, replayed: RunFolder) -> None:
    """Another one has something there, so the table is shown, and says what is not in it."""
    run = replayed("a")
    asked = ("--scope", "queue", "--metric", "wait.first_start.p95", "--metric", "makespan")
    said = "makespan is not measured for scope 'queue', but for all"
    assert said in harness("compare", run, *asked).out.split("\n")
    assert f"- {said}" in harness("compare", run, *asked, "--format", "markdown").out.split("\n")
    assert json.loads(harness("compare", run, *asked, "--json").out)["absent"] == [said]
    assert harness("compare", run, *asked, "--format", "csv").err == f"warning: {said}\n"


def test_printing_a_comparison_prints_its_table(harness: Callable, replayed: RunFolder) -> None:
    """As the command does."""
    run = replayed("a")
    assert f"{package.compare([run])}\n" == harness("compare", run, "--all").out


def test_demo_answers_in_json(harness: Callable) -> None:
    """The list of traces, and what a replay of one gives."""
    (first, *_) = json.loads(harness("demo", "--list", "--json").out)["traces"]
    assert set(first) == {"name", "about", "plugins"}
    shown = harness("demo", first["name"], "--until", "1h", "--json", "-o", "mine")
    assert [run["policy"]["name"] for run in json.loads(shown.out)["runs"]] == first["plugins"]
    assert " -o mine" in shown.err.partition("\n")[0]


@pytest.mark.nightly
def test_demo_ends_with_a_verdict(harness: Callable) -> None:
    """Its replays and twins are enough to say what is better, and at which price."""
    shown = harness("demo")
    assert "--until 1d --shake 4" in shown.err
    verdict = next(line for line in shown.out.split("\n") if line.startswith("If preempted jobs"))
    assert "keep “none”, unless the gains with “fairsharing” are worth their costs" in verdict
    assert "  shared: better, shares " in shown.out
    differences = {line.split()[0]: line.split()[-1] for line in shown.out.split("\n") if line.strip()}
    assert differences["fairness.share_deviation"] == "▲"
    assert differences["delay.mean"] == "▼"
