"""Help: what it says, how fast it is there, and that every example in it works as it stands."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import click
import polars as pl
import pytest
from cli_environment import called
from command_lines import brief, carried_out, examples, subcommands, undrawn
from doc_pages import write_pm100

from harness.plugins import load

ROOT = Path(__file__).parents[2]
SWF = """\
; UnixStartTime: 1027839845
; MaxProcs: 8
1 0 5 60 2 -1 -1 2 120 -1 1 3 1 -1 -1 -1 -1 -1
2 30 0 45 4 -1 -1 4 60 -1 1 4 1 -1 -1 -1 -1 -1
"""
PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-01 00:00:00,60,1,60,0e4a51
2017-10-01 00:01:00,120,16,1920,6214e9
"""


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples name, all of it small."""
    place = tmp_path_factory.mktemp("stocked")
    (place / "traces").mkdir()
    for name in ("philly.cluster.yaml", "mix.cluster.yaml", "mix.yaml"):
        shutil.copy(ROOT / "traces" / name, place / "traces")
    shutil.copytree(ROOT / "docs" / "examples", place / "docs" / "examples")
    shutil.copy(place / "traces" / "philly.cluster.yaml", place / "pr.yaml")
    hours = pl.duration(hours=pl.int_range(40), time_unit="us")
    pl.select(
        job_id=pl.int_range(40).cast(pl.String),
        submit_time=hours,
        duration=pl.duration(minutes=90, time_unit="us") + 0 * hours,
        queue=pl.when(pl.int_range(40) % 2 == 0).then(pl.lit("6214e9")).otherwise(pl.lit("0e4a51")),
        **{"request.nvidia.com/gpu": pl.int_range(40, dtype=pl.Int64) % 8 + 1},
    ).write_parquet(place / "traces" / "philly.parquet")
    pl.read_parquet(ROOT / "traces" / "mix.parquet").gather_every(190).write_parquet(
        place / "traces" / "mix.parquet"
    )
    shutil.copy(place / "traces" / "mix.parquet", place / "history.parquet")
    frame = pl.read_parquet(place / "traces" / "philly.parquet")
    ended = pl.col("submit_time") + pl.col("duration")
    frame.with_columns(recorded_start="submit_time", recorded_end=ended).write_parquet(
        place / "month.parquet"
    )
    for name in ("job.yaml", "more-quota.yaml"):
        shutil.copy(ROOT / "docs" / "examples" / name, place)
    with gzip.open(ROOT / "docs" / "examples" / "live.json.gz") as live:
        (place / "dump.yaml").write_bytes(live.read())
    write_pm100(place / "job_table.parquet")
    with gzip.open(place / "philly.csv.gz", "wt") as file:
        file.write(PHILLY)
    with gzip.open(place / "HPC2N-2002-2.2-cln.swf.gz", "wt") as file:
        file.write(SWF)
    for name in ("nodes.txt", "qos.txt", "assoc.txt"):
        shutil.copy(ROOT / "tests" / "plugins" / "readers" / "slurm" / name, place)
    for corpora in (ROOT / "tests" / "conformance", ROOT.parent / "shared" / "conformance"):
        if (corpora / "kube-preempt-named.jsonl.gz").is_file():
            shutil.copy(corpora / "kube-preempt-named.jsonl.gz", place)
            break
    labels = {"__name__": "kueue_cluster_queue_nominal_quota", "cluster_queue": "a", "flavor": "any"}
    series = {"metric": {**labels, "resource": "cpu"}, "values": [[1_795_318_800, "8"], [1_795_318_860, "4"]]}
    with gzip.open(place / "quotas.json.gz", "wt") as file:
        json.dump({"data": {"result": [series]}}, file)
    (place / "small-sweep.yaml").write_text(
        "trace: traces/mix.parquet\nplugins: [none]\nvary: {scale-arrivals: [1, 2]}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert called(["replay", "traces/philly.parquet", "-q", "-p", "none", "-p", "none@strict"]) == 0
        assert called(["sweep", "small-sweep.yaml", "-q", "--workers", "1"]) == 0
    return place


@pytest.fixture(scope="module")
def judged(stocked: Path) -> None:
    """Adds what the examples of `harness bench` name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(stocked)
        line = ["bench", "run", "hpc2n", "-p", "none", "--twins", "2", "-q", "--workers", "1"]
        assert called(line) == 0


NOT_NOW = 3
"""The exit code of `harness simulate` where a job does not start now."""

LONG = re.compile("harness (bench (run|check|table) |demo mix|simulate .*--largest)")
"""Examples that take a second each, of what other tests of this folder and of tests/simulation call, too."""


@pytest.mark.parametrize(
    "example",
    [pytest.param(each, marks=pytest.mark.nightly if LONG.match(each) else ()) for each in examples()],
)
def test_an_example_works_as_it_stands(
    example: str,
    stocked: Path,
    folder: Path,
    shell: Callable,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """Whatever help shows can be copied, here with fewer twins; a shell opens what is read from a file.

    Charts are drawn in tests/report.
    """
    if " tune " in example:
        pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")
    if re.search(r" trace (record|fetch) | events (march|http)|^kubectl ", example):
        pytest.skip("asks a live server, or needs a recording; tests/live does it")
    unasked = ["docs", "bench"]
    if " bench " in example:
        request.getfixturevalue("judged")
        unasked = ["docs"]
    shutil.copytree(stocked, folder, ignore=shutil.ignore_patterns(*unasked), dirs_exist_ok=True)
    (folder / "docs").symlink_to(stocked / "docs")
    if " conform " in example and not (folder / "kube-preempt-named.jsonl.gz").exists():
        pytest.skip("no recorded decisions beside the checkout")
    if example.startswith("harness mcp "):
        pytest.skip("serves until stdin ends; tests/tool_server asks it")
    code, out, err = shell(example) if " < " in example else carried_out(undrawn(brief(example)), capsys)
    assert code == 0 or (example.startswith("harness simulate ") and code == NOT_NOW), err
    assert out


@pytest.mark.parametrize(("name", "command"), list(subcommands()))
def test_help_opens_with_one_sentence_and_ends_with_examples(name: str, command: click.Command) -> None:
    """The first paragraph says in one sentence what the command does; two real examples come last."""
    first = " ".join((command.help or "").split("\n\n")[0].split())
    assert first.endswith("."), first
    assert not re.search(r"[.;!?] [A-Z]", first), f"more than one sentence: {first}"
    shown = command.get_help(click.Context(command, info_name=name))
    *_, last = shown.rstrip().split("\n\n")
    assert last.strip().startswith("Examples:\n")
    assert len(last.strip().split("\n")) >= 3
    assert max(map(len, shown.split("\n"))) <= 100


@pytest.mark.parametrize("group", ["trace", "cluster", "experiment", "bench", "plugins"])
def test_a_group_lists_whole_sentences_about_its_commands(group: str, harness: Callable) -> None:
    """As the list of all commands does; click's own ends with dots where a line is full."""
    listed = harness(group, "--help").out.partition("Commands:\n")[2].partition("Examples:\n")[0]
    assert listed
    assert "...\n" not in listed


def test_every_option_says_what_it_does() -> None:
    """No option is without help."""
    for name, command in subcommands():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts[-1]}"


@pytest.mark.parametrize("line", ["harness", "harness trace", "harness cluster"])
def test_a_group_without_a_command_shows_its_help(line: str, shell: Callable) -> None:
    """It is wrong usage all the same, so it goes to stderr with exit code 2."""
    ended = shell(line)
    assert (ended.code, ended.out) == (2, "")
    assert "Commands:" in ended.err


def test_help_of_a_plugins_command_is_there(harness: Callable, install: Callable) -> None:
    """A third party's command stands below ours, in help and when it is called."""
    install(
        "adds_hello",
        """
        import click, harness

        @harness.hookimpl
        def harness_register_commands(cli):
            @cli.command()
            def hello():
                "Greet."
                click.echo("hello")
        """,
    )
    assert re.search(r"\n  hello +Greet\.\n", harness("--help").out)
    assert harness("hello") == (0, "hello\n", "")
    ended = harness("--no-plugin", "adds_hello", "hello")
    assert ended.code == 2
    assert "there is no command 'hello'" in ended.err
    assert "hello" not in harness("--no-plugin", "adds_hello", "--help").out


def test_the_shell_completes_commands_and_policies(shell: Callable) -> None:
    """Click's own completion, with the names of plugins."""
    asked = {"_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": "harness repl", "COMP_CWORD": "1"}
    assert shell("harness", **asked).out == "plain,replay\n"
    asked |= {"COMP_WORDS": "harness replay x.parquet --plugin n", "COMP_CWORD": "4"}
    names = [f"plain,{name}" for name in load().policies.names() if name.startswith("n")]
    assert shell("harness", **asked).out.split() == names
    assert os.environ.get("_HARNESS_COMPLETE") is None
