"""On a terminal of 80 columns no command prints a line that is wider."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from cli_environment import called
from small_clusters import queues
from small_experiments import written

from harness.base.text import columns
from harness.cli.screen import tell

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 80
LONG, NAME = "queue-of-the-team-that-trains-recommendations-in-north-1", "trains-recommendations-in-north"
CASES = ROOT / "tests" / "conformance" / "kube-preempt-named.jsonl.gz"
LIVE = ROOT / "docs" / "examples" / "live.json.gz"
JOB = ROOT / "docs" / "examples" / "job.yaml"
COMMANDS = (
    "plugins",
    "plugins --kueue-version v0.13",
    "demo --list",
    "reproduce --list",
    f"conform {CASES}",
    f"trace info {NAME}.parquet",
    f"trace lint {NAME}.parquet --cluster {NAME}.yaml",
    f"trace calibrate {NAME}.parquet --cluster {NAME}.yaml --target-load 0.9",
    f"cluster check {NAME}.yaml",
    f"cluster check {LIVE}",
    "compare {0} {1} --all --notes",
    "compare {0} {1} --scope queue",
    "diff {0} {1}",
    f"explain {{0}} job-of-{LONG}-3",
    f"explain {{0}} --queue {LONG}1",
    "explain {0} --at 15s --all",
    "sweep items sweep.yaml",
    "experiment show results/small",
    "experiment compare results/small 0 1",
    f"simulate --cluster {LIVE} {JOB}",
    f"simulate --cluster {LIVE} --largest nvidia.com/gpu=1..64 --shape nvidia.com/gpu=1",
    f"simulate --trace {NAME}.parquet --cluster {NAME}.yaml -p kueue-classic --at 15s",
    f"forecast --cluster {LIVE} --history past.parquet --futures 2 --workers 1 --submit {JOB}",
)
"""Each command that prints a table; `bench`, `tune` and `validate` take long and use the same functions."""


class Terminal(StringIO):
    """A terminal that keeps what it shows."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def shown(monkeypatch: pytest.MonkeyPatch, line: str) -> tuple[int, str, str]:
    """What a command writes to stdout and stderr, which are terminals."""
    out, err = Terminal(), Terminal()
    with monkeypatch.context() as patch:
        for name, value in {"COLUMNS": str(WIDTH), "CI": "1", "NO_COLOR": "1"}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = called(line.split())
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The runs of a trace whose names are long, in the present folder, which has an experiment of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("widths"))
        rows = [
            {
                "job_id": f"job-of-{LONG}-{number}",
                "submit_time": timedelta(seconds=number),
                "duration": timedelta(seconds=20),
                "queue": f"{LONG}{number % 2 + 1}",
                "priority": number % 3,
                "request.cpu": 3000,
            }
            for number in range(12)
        ]
        frame = pl.DataFrame(rows).cast({"submit_time": pl.Duration("us"), "duration": pl.Duration("us")})
        frame.cast({"priority": pl.Int32}).write_parquet(f"{NAME}.parquet")
        past = frame.with_columns(pl.lit("training").alias("queue"), pl.lit(300).alias("request.cpu"))
        past.cast({"priority": pl.Int32}).write_parquet("past.parquet")
        text = queues({f"{LONG}1": {"cpu": "4"}, f"{LONG}2": {"cpu": "5"}}, nodes=2)
        Path(f"{NAME}.yaml").write_text(text)
        labels = (f"{NAME}-a", f"{NAME}-b")
        plugins = ("-p", f"kueue-classic@{labels[0]}", "-p", f"fairsharing@{labels[1]}")
        assert called(["replay", f"{NAME}.parquet", "--cluster", f"{NAME}.yaml", "-q", *plugins]) == 0
        varied = {"scale-arrivals": ["1", "2"], "fairsharing.preemptionStrategies": ["LessThanInitialShare"]}
        written(Path.cwd(), trace=f"{NAME}.parquet", cluster=f"{NAME}.yaml", vary=varied)
        assert called(["sweep", "sweep.yaml", "-q", "--workers", "1"]) == 0
        yield sorted(map(str, Path("results", NAME).iterdir()))


@pytest.mark.parametrize(
    "command",
    [pytest.param(each, marks=pytest.mark.nightly if "--largest" in each else ()) for each in COMMANDS],
    ids=range(len(COMMANDS)),
)
def test_no_line_is_wider_than_the_terminal(
    command: str, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables shorten names, fold texts, or go on below; only a word such as a path is longer than a line."""
    code, out, err = shown(monkeypatch, command.format(*runs))
    assert code in (0, 1, 3), err
    assert out
    wide = [line for line in out.split("\n") if columns(line) > WIDTH]
    assert not [line for line in wide if len(line.split()) > 1]
    assert all(re.search("/|results", line) for line in wide)


def test_notes_fold_on_a_terminal_and_are_whole_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """People read lines; scripts look for sentences."""
    note = f"warning: {' '.join(['queue', LONG, 'has', 'no', 'quota'] * 3)}"
    for stream in (Terminal(), StringIO()):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            tell(note)
        lines = stream.getvalue().rstrip("\n").split("\n")
        assert " ".join(map(str.strip, lines)) == note
        assert (max(map(columns, lines)) <= WIDTH) is stream.isatty()
