"""Commands that write a file never write over what they read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_environment import called

import harness

TRACES = Path(__file__).parents[2] / "traces"


@pytest.mark.parametrize(
    ("name", "arguments", "what"),
    [
        ("mix.parquet", ["cluster", "init", "mix.parquet", "-o", "mix.parquet"], "trace"),
        ("mix.parquet", ["trace", "convert", "mix.parquet", "mix.parquet"], "trace"),
        ("mix.parquet", ["trace", "generate", "--fit", "mix.parquet", "-o", "mix.parquet"], "trace"),
        ("mix.yaml", ["trace", "generate", "mix.yaml", "-o", "mix.yaml"], "specification"),
        (
            "mix.cluster.yaml",
            ["cluster", "convert", "--to", "kueue", "mix.cluster.yaml", "-o", "mix.cluster.yaml"],
            "file",
        ),
    ],
)
def test_what_is_read_is_not_written_over(
    name: str,
    arguments: list[str],
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The file is as it was, and the message says so."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(TRACES / name, name)
    before = Path(name).read_bytes()
    assert called(arguments) == 2
    assert f"{name} is the {what} itself" in capsys.readouterr().err
    assert Path(name).read_bytes() == before


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (["export", "--format", "perfetto"], "run.json"),
        (["export", "--format", "openmetrics"], "jobs.parquet"),
        (["report"], "run.json"),
        (["trace", "from-run"], "stints.parquet"),
    ],
)
def test_no_file_of_a_run_is_written_over(
    command: list[str],
    file: str,
    write_trace: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Other files may lie beside those of the run."""
    monkeypatch.chdir(tmp_path)
    run = harness.replay(write_trace({}), output="results").path
    before = (run / file).read_bytes()
    assert called([*command, str(run), "-o", str(run / file)]) == 2
    assert f"{run / file} is part of the run {run}" in capsys.readouterr().err
    assert (run / file).read_bytes() == before
    if command == ["report"]:
        assert called(["report", str(run), "-o", str(run / "report.html")]) == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["out.csv"], "Error: out.csv does not end with .parquet, but the command writes Parquet"),
        (
            ["."],
            "Error: . does not end with .parquet, but the command writes Parquet\nHint: call it OUT.parq",
        ),
        (["a.parquet", "-o", "b.parquet"], "Error: the output is given twice: a.parquet and -o b.parquet"),
        ([], "Error: no output file is given"),
    ],
)
def test_parquet_is_written_to_one_place_that_is_called_so(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is read before that is known; -o does what convert's argument does."""
    monkeypatch.chdir(tmp_path)
    assert called(["trace", "convert", "nothing.parquet", *arguments]) == 2
    assert capsys.readouterr().err.startswith(says)
    shutil.copy(TRACES / "mix.parquet", "mix.parquet")
    assert called(["trace", "generate", "--fit", "mix.parquet", "-o", "out.csv"]) == 2
    assert "out.csv does not end with .parquet" in capsys.readouterr().err
    assert called(["trace", "convert", "mix.parquet", "-o", "out.parquet"]) == 0
    assert Path("out.parquet").exists()
