"""`--fail-on`: what conditions mean, and what is said of those that mean nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from small_clusters import local_queue, queues

import harness
from harness.analysis.comparison.conditions import checks_text, parse_condition
from harness.analysis.comparison.samples import Samples
from harness.base.errors import HarnessError, InputError


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> harness.Comparison:
    """20 jobs of one or three cores on six; in the second run, one that does not fit stops others."""
    import polars as pl

    folder = tmp_path_factory.mktemp("conditions")
    columns = {
        "job_id": [f"j{number}" for number in range(20)],
        "submit_time": [0] * 20,
        "duration": [10_000_000 * (1 + number % 2) for number in range(20)],
        "queue": ["prod" if number % 4 else "dev" for number in range(20)],
        "request.cpu": [1000 + 2000 * (number % 3 == 0) for number in range(20)],
    }
    times = pl.col("submit_time", "duration").cast(pl.Duration("us"))
    pl.DataFrame(columns).with_columns(times).write_parquet(folder / "t.parquet")
    (folder / "c.yaml").write_text(queues({"prod": {"cpu": "4"}, "dev": {"cpu": "2"}}))
    runs = [
        harness.replay(
            folder / "t.parquet",
            cluster=folder / "c.yaml",
            label=blocking,
            options={"blocking": blocking},
            output=folder,
        )
        for blocking in ("skip", "strict")
    ]
    return harness.compare(runs)


def holds(comparison: harness.Comparison, text: str) -> bool:
    return any(check.holds for check in comparison.check(text, values=True))


@pytest.mark.parametrize("bound", ["< 21", "<= 21", "> 21", ">= 21", "< +5%", "<= +1"])
@pytest.mark.parametrize("value", [0.0, 19.9, 20.0, 20.95, 21.0, 21.1])
def test_what_is_beyond_a_condition_does_not_meet_it(bound: str, value: float) -> None:
    """At the bound itself, too, which only `<=` and `>=` allow."""
    how, limit = bound.split()
    reached = {"21": 21.0, "+5%": 20 + 0.05 * 20, "+1": 21.0}[limit]
    met = {"<": value < reached, "<=": value <= reached, ">": value > reached, ">=": value >= reached}[how]
    excess = parse_condition(f"disruption.preemptions {bound}").excess("count", value, 20.0)
    assert (excess <= 0) is met


def test_bounds_with_a_sign_are_changes_and_others_are_values(compared: harness.Comparison) -> None:
    """The mean wait of both runs is known, and conditions on either side of it hold or do not."""
    ((_, (base, value)),) = compared.select("wait.total.mean")
    assert base is not None
    assert value is not None
    assert value > base
    more = value - base
    for bound, reached in (
        (f"+{100 * more / base - 0.1:.6f}%", True),
        (f"+{100 * more / base + 0.1:.6f}%", False),
        (f"+{more - 0.01:.6f}", True),
        (f"+{more + 0.01:.6f}s", False),
        (f"{value - 0.01:.6f}s", True),
        (f"{value + 0.01:.6f}", False),
        ("-5%", True),
    ):
        assert holds(compared, f"wait.total.mean > {bound}") is reached, bound
        assert holds(compared, f"wait.total.mean <= {bound}") is not reached, bound
    ratio = compared.to_polars("utilization.allocated")["strict"][0]
    assert holds(compared, f"utilization.allocated{{resource=cpu}} < {100 * ratio + 1:.3f}%")
    assert not holds(compared, f"utilization.allocated < {100 * ratio - 1:.3f}%")


def test_scopes_patterns_and_changes_from_nothing(compared: harness.Comparison) -> None:
    """A scope is part of the condition; a pattern is every metric of it; from 0, any increase is endless."""
    ((_, (base, value)),) = compared.select("wait.total.mean", scope="queue=prod")
    assert base is not None
    assert value is not None
    assert holds(compared, "wait.total.mean{queue=prod} > +0%") is (value > base)
    checks = compared.check("wait.*.max{ queue = prod } >= 0s", values=True)
    assert [check.holds for check in checks] == [True, True]
    assert "wait.total.max {queue=prod} is " in checks[1].text
    assert " in strict, " in checks[1].text
    assert not holds(compared, "disruption.preemptions > +0%")
    (check,) = compared.check("disruption.t* > 0", values=True)  # no run has a time to restart
    assert check.measured.metric == "disruption.thrash"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("wait.total.mean", "is not understood"),
        ("wait.total.mean = 4", "is not understood"),
        ("wait.total.mean{queue} > 4", "'queue' is not KEY=VALUE"),
        ("wait.total.mean{all=dev} > 4", "'all=dev' is not KEY=VALUE"),
        ("wait.total.mean{queue=dev,queue=prod} > 4", "names 'queue' twice"),
        ("wait.total.mean{quueue=prod} > 4", "there is no scope 'quueue'"),
        ("wait.total.mean{queue=a,priority=1} > 4", "two scopes, queue and priority"),
        ("wait.total.mean > soon", "'soon' is not a bound"),
        ("wait.total.mean > 5%", "is not a duration such as 10m"),
        ("jobs.finished > 5m", "'5m' is not a number"),
        ("wait.totl.mean > 4", "no run has a metric 'wait.totl.mean'"),
        ("wait.total.mean{queue=x} > 4", "for scope 'queue=x'"),
        ("utilization.lost{resource=gpu} > 4", "was not measured for resource 'gpu'"),
        ("disruption.time_to_restart.p50 > 4", "has no value in strict"),
    ],
)
def test_conditions_that_mean_nothing_are_errors(text: str, error: str, compared: harness.Comparison) -> None:
    """A condition that could never hold would let everything through."""
    with pytest.raises(InputError, match=error):
        compared.check(text, values=True)


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("quueue=prod", "did you mean 'queue=prod'? there is: all, queue, "),
        ("zone=me", "there is: all, queue, "),
        ("user=me", "there is: all, priority, queue"),
        ("queue=nosuch", "there is: queue=dev, queue=prod"),
        ("queue=pord", "did you mean 'queue=prod'? there is: queue=dev, queue=prod"),
        ("priority=prod", "did you mean 'queue=prod'? there is: priority=0"),
        ("beneficiary=x", "there is: all, priority, queue"),
        ("queue=prod,resource=cpu", "wait.first_start.p95 has no resource"),
    ],
)
def test_an_unknown_scope_is_an_error_that_names_the_known_ones(
    where: str, hint: str, compared: harness.Comparison
) -> None:
    """It must not mean all jobs, nor none: a gate would never fail by it."""
    with pytest.raises(InputError) as error:
        holds(compared, f"wait.first_start.p95{{{where}}} > +5%")
    assert (error.value.hint or "").startswith(hint)
    assert "wait.first_start.p95{" in error.value.message
    if not where.endswith("cpu"):
        for ask in (
            compared.to_polars,
            compared.changes,
            compared.table,
            compared.markdown,
            compared.to_json,
        ):
            with pytest.raises(InputError) as error:
                ask("wait.first_start.p95", scope=where)
            assert (error.value.hint or "").startswith(hint)


@pytest.mark.parametrize(
    ("scope", "known"),
    [
        ("quueue=prod", "all, queue, "),
        ("queue=nosuch", "queue=dev, queue=prod"),
        ("quota=nosuch", "quota=dev, quota=prod"),
        ("priority=high", "priority=0"),
        ("reason=x", "all, queue, quota, priority"),
        ("queue", "all, queue, quota, priority"),
    ],
)
def test_samples_are_of_jobs_that_a_scope_names(scope: str, known: str, compared: harness.Comparison) -> None:
    """A scope of no job, or of something else than jobs, is an error, whoever asks."""
    samples = Samples(compared.runs[0], compared.pairs.rows[0], compared.shares[0])
    members = samples.members("queue=prod")
    assert members is not None
    assert members.sum() == 15
    with pytest.raises(InputError) as error:
        samples.members(scope)
    assert known in (error.value.hint or "")


def test_a_change_needs_two_runs(compared: harness.Comparison) -> None:
    """A value can be asked of one run alone, a change cannot."""
    alone = harness.compare(compared.runs[:1])
    assert holds(alone, "jobs.finished >= 20")
    with pytest.raises(InputError, match="no second run"):
        holds(alone, "jobs.finished > +1")


def test_the_command_exits_with_1_where_a_condition_holds(
    compared: harness.Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table is printed all the same; what holds is said on stderr; wrong conditions are 2."""
    from cli_environment import called

    runs = [str(run.path) for run in compared.runs]
    assert called(["compare", *runs, "--fail-on-values", "--fail-on", "jobs.finished < 20"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.split("\n\n")[-1].split("\n") == [
        "1 check of every run but the baseline skip, by point values: none fails",
        "check               result  found",
        "──────────────────  ──────  ─────────────────────────────────────────────",
        "jobs.finished < 20  passes  jobs.finished is 20 in strict, 20 in skip (=)",
        "",
    ]
    code = called(
        [
            "compare",
            *runs,
            "--fail-on-values",
            "--fail-on",
            "jobs.finished < 20",
            "--fail-on",
            "jobs.finished>=20",
        ]
    )
    out, err = capsys.readouterr()
    assert code == 1
    assert "baseline skip" in out
    assert "\n2 checks of every run but the baseline skip, by point values: 1 fails\n" in out
    assert "  jobs.finished>=20: jobs.finished is 20 in strict, 20 in skip (=)\n" in err
    assert called(["compare", *runs, "--fail-on-values", "--fail-on", "jobs.finished"]) == 2
    assert "Hint: write METRIC{SCOPE} > BOUND" in capsys.readouterr().err


@pytest.fixture
def printed(compared: harness.Comparison, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the command prints in a format."""
    from cli_environment import called

    def show(*options: str) -> str:
        assert called(["compare", *(str(run.path) for run in compared.runs), *options]) == 0
        return capsys.readouterr().out

    return show


def test_every_format_says_the_same(printed: Callable[..., str], compared: harness.Comparison) -> None:
    """One row a metric in Markdown, one row a metric and run in CSV, with the same verdicts as in JSON."""
    import json
    from io import StringIO

    import polars as pl

    choice = ("--metric", "wait.total.*", "--scope", "queue")
    rows = json.loads(printed(*choice, "--format", "json"))["metrics"]
    assert len(rows) == 12
    assert printed(*choice, "--json") == printed(*choice, "--format", "json")
    frame = pl.read_csv(StringIO(printed(*choice, "--format", "csv")))
    others = frame.filter(pl.col("run") == "strict")
    assert others["verdict"].fill_null("").to_list() == [row["changes"]["strict"]["verdict"] for row in rows]
    assert others["value"].to_list() == [row["values"]["strict"] for row in rows]
    parts = printed(*choice, "--format", "markdown").split("\n\n")
    head, points, table, _ = (each.split("\n") for each in parts)
    assert head[0].startswith("baseline skip (plugin none): the first of 2 runs, sorted by name as in ")
    assert points == ["- strict", "  - option blocking skip -&gt; strict"]
    assert table[0] == "| metric | skip | strict | strict against skip |"
    assert len(table) == 2 + 12


def test_markdown_shows_names_as_they_are(tmp_path: Path, write_trace: Callable[..., Path]) -> None:
    """Neither markup of HTML nor that of Markdown gets through, and no name breaks the table."""
    trace = write_trace({"queue": "<b>|*x*"})
    run = harness.replay(trace, output=tmp_path)
    text = harness.compare([run]).markdown("wait.total.mean", scope="queue")
    assert "\\{queue=&lt;b&gt;\\|\\*x\\*\\}" in text


def test_markdown_folds_the_warnings_of_the_replays(tmp_path: Path, write_trace: Callable[..., Path]) -> None:
    """One line with their number, which nobody can cut in its middle; brief with the first five."""
    trace = write_trace({"queue": "q"})
    plain = queues({"q": {"cpu": "4"}})
    unread = "".join(f"---\n{{kind: K{n}<i>, apiVersion: x/v1, metadata: {{name: a}}}}\n" for n in range(7))
    runs = []
    for name, text in (("plain", plain), ("odd", plain + unread)):
        (tmp_path / f"{name}.yaml").write_text(text)
        cluster = tmp_path / f"{name}.yaml"
        runs.append(harness.replay(trace, cluster=cluster, label=name, output=tmp_path))
    both = harness.compare(runs)
    (brief,) = [line for line in both.markdown(brief=True).split("\n") if line.startswith("<details>")]
    assert brief.startswith("<details><summary>7 warnings of the replays</summary><ul><li>odd: K0&lt;i&gt; ")
    assert brief.endswith("<li>and 2 more</li></ul></details>")
    assert brief.count("<li>") == 6
    (whole,) = [line for line in both.markdown().split("\n") if line.startswith("<details>")]
    assert whole.count("<li>") == 7
    assert "<li>K0&lt;i&gt; " in harness.compare(runs[1:]).markdown()
    assert "<details>" not in harness.compare(runs[:1]).markdown()


def test_what_was_checked_is_in_markdown_and_json_too(
    compared: harness.Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each check with its run and result; JSON has the figures. CSV has values alone."""
    import json

    from cli_environment import called

    gate = [
        "--fail-on-values",
        "--fail-on",
        "wait.total.mean{queue=prod} > +5%",
        "--fail-on",
        "jobs.finished < 20",
    ]
    runs = [str(run.path) for run in compared.runs]
    assert called(["compare", *runs, *gate, "--format", "markdown"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        "2 checks of every run but the baseline skip, by point values: 1 fails\n\n- fails: "
    )
    assert "\n- passes: jobs.finished &lt; 20: jobs.finished is 20 in strict, 20 in skip (=)\n\n" in out
    assert called(["compare", *runs, *gate, "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)["checks"]
    ((_, (base, value)),) = compared.select("wait.total.mean", scope="queue=prod")
    assert (first["value"], first["baseline"], first["run"], first["holds"]) == (value, base, "strict", True)
    assert (first["metric"], first["scope"]) == ("wait.total.mean", "queue=prod")
    assert (second["condition"], second["holds"]) == ("jobs.finished < 20", False)
    assert called(["compare", *runs, *gate, "--format", "csv"]) == 1
    assert capsys.readouterr().out.startswith("metric,scope,")


def test_a_condition_that_cannot_be_decided_leaves_the_table(
    compared: harness.Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    """The comparison is printed all the same, and the exit code is that of wrong input."""
    from cli_environment import called

    runs = [str(run.path) for run in compared.runs]
    assert (
        called(["compare", *runs, "--fail-on-values", "--fail-on", "disruption.time_to_restart.p50 > 4"]) == 2
    )
    out, err = capsys.readouterr()
    assert "wait.first_start.p95" in out
    assert "has no value in strict" in err


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("wait.first_strat.p95 > +5%", "wait.first_strat.p95"),
        ("wait.first_start.p95{resource=gpu} > +5%", "has no resource"),
        ("wait.first_start.p95{queue=prd} > +5%", "prd"),
        ("jobs.finished > +10m", "'10m' is not a number"),
        ("disruption.preemptions > 80%", "'80%' is not a number"),
    ],
)
def test_a_condition_that_can_never_be_judged_is_refused_first(
    condition: str, why: str, compared: harness.Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    """No twin is replayed for it, and no table is printed."""
    from cli_environment import called

    runs = [str(run.path) for run in compared.runs]
    assert called(["compare", *runs, "--shake", "2", "--fail-on", condition]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert why in err
    assert "twins" not in err
    assert called(["compare", *runs, "--fail-on", condition]) == 2
    assert why in capsys.readouterr().err
    with pytest.raises(HarnessError, match=re.escape(why)):
        compared.check(condition)


def test_without_twins_only_point_values_are_judged(
    compared: harness.Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    """One replay of each run does not tell a change from luck; the error names both ways out."""
    from cli_environment import called

    with pytest.raises(InputError, match="conditions need twins"):
        compared.check("jobs.finished < 20")
    runs = [str(run.path) for run in compared.runs]
    assert called(["compare", *runs, "--fail-on", "jobs.finished < 20"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Hint: add --shake 5 or --fail-on-values" in err
    assert called(["compare", *runs, "--fail-on-values"]) == 2
    assert "has no effect without --fail-on" in capsys.readouterr().err


def test_over_twins_a_bound_is_held_against_the_interval(compared: harness.Comparison) -> None:
    """It fails only where the whole interval is beyond, and is undecided where the bound lies within."""
    twins = harness.compare(compared.runs, shake=4, workers=1)
    (row,) = twins.rows("wait.total.mean")
    interval = row.changes[0].interval
    assert interval is not None
    assert interval.ratio
    low, high = 100 * (interval.low - 1), 100 * (interval.high - 1)
    assert 0 < low < high
    ((_, values),) = twins.select("wait.total.mean")
    paired = twins.paired(row.measured)
    assert paired is not None
    mean, level = values[1], paired.level(1)
    assert mean is not None
    assert level is not None
    assert level.low < mean < level.high
    difference = paired.difference(1)
    assert difference is not None
    for bound, holds in (
        (f"> +{low - 1:.6f}%", True),
        (f"> +{(low + high) / 2:.6f}%", None),
        (f"> +{high + 1:.6f}%", False),
        (f"< +{low - 1:.6f}%", False),
        (f"<= +{high + 1:.6f}%", True),
        (f"> +{difference.low - 0.01:.6f}s", True),
        (f"> +{(difference.low + difference.high) / 2:.6f}s", None),
        (f"> +{difference.high + 0.01:.6f}s", False),
        (f"> {level.low - 0.01:.6f}s", True),
        (f"> {mean:.6f}s", None),
        (f"> {level.high + 0.01:.6f}s", False),
    ):
        (check,) = twins.check(f"wait.total.mean {bound}")
        assert check.holds is holds, bound
    (check,) = twins.check(f"wait.total.mean > +{low - 1:.6f}%", values=True)
    assert check.holds is True


def test_an_undecided_condition_passes_with_the_word(
    compared: harness.Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 0, and table, Markdown and JSON say that twins did not decide."""
    import json

    from cli_environment import called

    twins = harness.compare(compared.runs, shake=4, workers=1)
    (row,) = twins.rows("wait.total.mean")
    interval = row.changes[0].interval
    assert interval is not None
    within = f"wait.total.mean > +{50 * (interval.low + interval.high) - 100:.3f}%"
    runs = [str(run.path) for run in compared.runs]
    gate = ["compare", *runs, "--shake", "4", "--workers", "1", "--fail-on", within]
    assert called(gate) == 0
    text = capsys.readouterr().out.split("\n\n")[-1]
    assert text.startswith(
        "1 check of every run but the baseline skip, by 95 % intervals over twins: none fails, 1 undecided\n"
    )
    assert "  undecided  wait.total.mean is " in text
    assert "(change [+" in text
    assert called([*gate, "--format", "markdown"]) == 0
    assert "\n- undecided: wait.total.mean" in capsys.readouterr().out
    assert called([*gate, "--json"]) == 0
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["holds"] is None
    assert called([*gate, "--fail-on", "jobs.finished >= 20"]) == 1
    out, err = capsys.readouterr()
    assert (
        "2 checks of every run but the baseline skip, by 95 % intervals over twins: 1 fails, 1 undecided"
        in out
    )
    assert "jobs.finished is 20 in strict, 20 in skip" in err


def test_small_changes_that_a_condition_is_about_are_told(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """A table calls less than one per cent no change, but a condition may be stricter."""
    trace = write_trace({}, {"submit_time": 1000, "duration": 10})
    runs = [
        harness.replay(trace, label=label, scale_arrivals=factor, output=tmp_path)
        for label, factor in (("base", 1), ("pr", "1.005"))
    ]
    (check,) = harness.compare(runs).check("makespan < -0.1%", values=True)
    assert check.holds
    assert check.text == "makespan is 16m45s in pr, 16m50s in base (-0.493 %)"


def test_a_gate_between_manifests_asks_every_run_but_the_baseline(
    write_trace: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Less quota makes prod wait; the baseline is the first as given, or the one named."""
    from cli_environment import called

    trace = write_trace(*({"queue": "ab"[number % 2], "duration": 60} for number in range(8)))
    runs = {}
    for label, cores in (("base", 4), ("less", 1), ("more", 8)):
        (tmp_path / "c.yaml").write_text(queues({"a": {"cpu": str(cores)}, "b": {"cpu": "1"}}))
        runs[label] = harness.replay(
            trace,
            plugin="kueue-classic",
            cluster=tmp_path / "c.yaml",
            label=label,
            output=tmp_path / "results",
        )
    gate = [
        "--fail-on-values",
        "--fail-on",
        "wait.first_start.p95{queue=a} > +5%",
        "--fail-on",
        "quota.over{quota=a} > 0",
    ]

    def checked(*order: str, more: tuple[str, ...] = ()) -> tuple[int, list[str], str]:
        code = called(["compare", *(str(runs[label].path) for label in order), *gate, *more])
        out = capsys.readouterr().out
        return code, out.split("\n\n")[-1].split("\n"), out.split("\n\n")[1].split("\n")[0]

    code, lines, title = checked("base", "less", "more")
    assert (code, lines[0]) == (1, "4 checks of every run but the baseline base, by point values: 1 fails")
    assert [line.split()[3] for line in lines[3:7]] == ["fails", "passes", "passes", "passes"]
    assert "wait.first_start.p95 {queue=a} is 2m51s in less, 26s in base (+549.0 % ?)" in lines[3]
    assert title == (
        f"baseline base (plugin kueue-classic): the first of 3 runs, sorted by name as in "
        f"{tmp_path}/results/trace/*; --baseline chooses another"
    )
    code, lines, title = checked("less", "base", "more")
    assert (code, lines[0]) == (0, "4 checks of every run but the baseline less, by point values: none fails")
    assert title == "baseline less (plugin kueue-classic): the first of 3 runs, in the given order"
    code, lines, title = checked("less", "more", "base", more=("--baseline", "base"))
    assert (code, lines[0]) == (1, "4 checks of every run but the baseline base, by point values: 1 fails")
    assert title == "baseline base (plugin kueue-classic): as requested"
    assert checked("less", "base", more=("--baseline", str(runs["base"].path)))[0] == 1


def test_a_verdict_on_two_runs_rests_on_these_alone() -> None:
    """A third run whose values are 0 changes nothing; what falls to 0 in every twin falls by all of it."""
    from harness.analysis.comparison.missing import Lack
    from harness.analysis.comparison.paired import Paired

    base, other, none = [10.0, 12.0, 15.0], [14.0, 15.0, 21.0], [0.0, 0.0, 0.0]
    lacks = [Lack(0, 0, 3)] * 3
    both, three = Paired([base, other], lacks[:2]), Paired([base, other, none], lacks)
    assert both.relative(1) == three.relative(1)
    assert both.level(1) == three.level(1)
    assert three.relative(2) == (-1.0, -1.0)
    assert Paired([none, base], lacks[:2]).relative(1) == (float("inf"), float("inf"))
    assert Paired([none, none], lacks[:2]).relative(1) == (0, 0)


def test_the_least_that_a_value_can_become_is_marked_by_checks_and_in_changes(
    compared: harness.Comparison, tmp_path: Path
) -> None:
    """As in tables: where a run was cut, the mean delay is `≥`; of whole runs it is not."""
    folder = compared.runs[0].path.parents[1]
    cut = harness.compare(
        [
            harness.replay(
                folder / "t.parquet", cluster=folder / "c.yaml", until="15s", output=tmp_path / name
            )
            for name in "ab"
        ]
    )
    for comparison, least in ((compared, False), (cut, True)):
        (check,) = comparison.check("delay.mean > +5%", values=True)[:1]
        assert ("is ≥ " in check.text) is least
        assert comparison.changes("delay.mean")["at_least"].to_list() == [least] * 2


def test_checks_that_do_not_fit_a_terminal_are_sentences(compared: harness.Comparison) -> None:
    """No line is wider than the terminal, and none of the words of the table is lost."""
    checks = compared.check("wait.*.max{queue=prod} >= 0s", values=True)
    table, text = (checks_text(compared, checks, values=True, width=width) for width in (None, 60))
    assert max(map(len, table.split("\n"))) > 60 >= max(map(len, text.split("\n")))
    assert " ".join(text.split()).count("fails: wait.*.max{queue=prod} >= 0s: ") == len(checks)
    assert checks_text(compared, checks, values=True, width=1000) == table


def test_equally_named_queues_of_several_namespaces_are_apart(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Each counts against a ClusterQueue of its own, and conditions name one of them by its namespace."""
    trace = write_trace(
        *(
            {"queue": "default", "namespace": space, "request.cpu": 1000, "duration": 60, "submit_time": at}
            for at, space in enumerate("abba")
        )
    )
    cluster = tmp_path / "c.yaml"
    doors = [local_queue(space, "default", f"team-{space}") for space in "ab"]
    cluster.write_text("".join([queues({"team-a": {"cpu": "1"}, "team-b": {"cpu": "2"}}), *doors]))
    runs = [
        harness.replay(trace, plugin=plugin, cluster=cluster, output=tmp_path / "runs")
        for plugin in ("kueue-classic", "none")
    ]
    waits = {
        row["scope"]: row["value"]
        for row in runs[0].metrics.filter(metric="wait.first_start.max").to_dicts()
        if row["scope"].startswith("queue=")
    }
    assert waits == {"queue=a/default": 57, "queue=b/default": 0}
    (check,) = harness.compare(runs).check("wait.first_start.max{queue=a/default} > +5%", values=True)
    assert check.holds is False
