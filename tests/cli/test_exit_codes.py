"""Exit codes, and tracebacks only for those who ask for them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FAILING = """
    import click
    import harness
    from harness.base.errors import CheckError

    class Raises:
        def __init__(self, cluster, view, options):
            if options["when"] == "made":
                raise RuntimeError("no licence")
            self.error = KeyboardInterrupt() if options["when"] == "interrupted" else KeyError("lost")
        def submit(self, job, pods, now): pass
        def release(self, job, pods, now, why): pass
        def cycle(self, now):
            raise self.error
            yield

    def metric(run, window):
        yield harness.Measurement("odd", "not a number", "count")

    @harness.hookimpl
    def harness_register_policies(register):
        when = harness.Option("when", "cycle", "when it fails", choices=("made", "cycle", "interrupted"))
        count = harness.Option("count", 1, "a number", type=int)
        share = harness.Option("share", 1.0, "a share", type=float)
        register(harness.PolicySpec("raises", Raises, help="fails", options=(when, count, share)))

    @harness.hookimpl
    def harness_register_commands(cli):
        @cli.command()
        @click.argument("how")
        def fail(how):
            if how == "check":
                raise CheckError("two is not three", hint="count again")
            if how == "usage":
                raise click.UsageError("not so")
            if how == "exit":
                raise SystemExit(3)
            if how == "click exit":
                click.get_current_context().exit(4)
            if how == "file":
                open("absent.txt")
            if how == "thread":
                import polars
                raise polars.exceptions.PanicException("Os: Resource temporarily unavailable")
            if how == "memory":
                raise SystemError("error return without exception set")
            if how == "panic":
                import polars
                raise polars.exceptions.PanicException("index out of bounds")
            raise ZeroDivisionError("a defect")
"""
HOOKS = """
    import harness

    @harness.hookimpl
    def harness_replay_started(plan):
        raise RuntimeError("not today")
"""
PANICKING = """
    import harness

    class PanicException(BaseException):
        pass

    class Panics:
        def __init__(self, cluster, view, options): pass
        def submit(self, job, pods, now): pass
        def release(self, job, pods, now, why): pass
        def cycle(self, now):
            raise PanicException("index out of bounds")

    @harness.hookimpl
    def harness_register_policies(register):
        register(harness.PolicySpec("panics", Panics, help="fails"))
"""
EXITING = """
    import sys
    import harness

    class Exits:
        def __init__(self, cluster, view, options):
            sys.exit()

    @harness.hookimpl
    def harness_register_policies(register):
        register(harness.PolicySpec("exits", Exits, help="fails"))

    @harness.hookimpl
    def harness_replay_started(plan):
        if plan.label == "hook":
            sys.exit()
"""
EXITING_IMPORT = """
    import sys

    sys.exit()
"""
EXITING_COMMANDS = """
    import sys
    import harness

    @harness.hookimpl
    def harness_register_commands(cli):
        sys.exit()
"""
METRIC = """
    import harness

    def rows(run, window):
        yield harness.Measurement("odd", "not a number", "count")

    @harness.hookimpl
    def harness_register_metrics(register):
        register(harness.MetricSpec("odd", rows, help="fails"))
"""


WARNING = """
    import warnings
    import harness

    @harness.hookimpl
    def harness_register_commands(cli):
        @cli.command()
        def caution():
            warnings.warn("mine.py was changed")
"""


@pytest.fixture
def trace(folder: Path, write_trace: Callable[..., Path]) -> str:
    """A small trace in the folder."""
    write_trace({}).rename(folder / "trace.parquet")
    return "trace.parquet"


def test_success_is_0(harness: Callable, trace: str) -> None:
    """Also for help and for the version."""
    for call in (
        ["replay", trace],
        ["plugins"],
        ["--version"],
        ["replay", "--help"],
        ["trace", "check", trace],
    ):
        assert harness(*call).code == 0


def test_a_warning_of_code_is_a_line_without_its_place(shell: Callable, install: Callable) -> None:
    """Whoever replays is told what is the matter, not where in our code it was noticed."""
    site = install("cautious", WARNING)
    assert shell("harness caution", PYTHONPATH=str(site)) == (0, "", "warning: mine.py was changed\n")


def test_a_check_that_does_not_hold_is_1(harness: Callable, install: Callable) -> None:
    """Told apart from bad input, for scripts."""
    install("failing", FAILING)
    assert harness("fail", "check") == (1, "", "Error: two is not three\nHint: count again\n")


@pytest.mark.parametrize(
    "call",
    [
        ["replay"],
        ["replay", "trace.parquet", "--nothing"],
        ["replay", "trace.parquet", "more"],
        ["compare"],
        ["trace"],
        ["trace", "nothing"],
        ["nothing"],
        ["replay", "absent.parquet"],
        ["replay", "trace.parquet", "--cluster", "absent.yaml"],
        ["trace", "convert", "trace.parquet", "absent/out.parquet"],
        ["cluster", "check", "trace.parquet"],
        ["conform", "trace.parquet"],
        ["compare", "absent"],
        ["--no-plugin", "absent", "plugins"],
    ],
)
def test_wrong_usage_and_bad_input_are_2(call: list[str], harness: Callable, trace: str) -> None:
    """One message on stderr, nothing on stdout, and no traceback."""
    ended = harness(*call)
    assert (ended.code, ended.out) == (2, "")
    assert "Error: " in ended.err or call == ["trace"]
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("call", "option"),
    [
        (["simulate"], "--cluster"),
        (["sweep"], "--cluster"),
        (["validate", "trace.parquet"], "--cluster"),
        (["trace", "check", "trace.parquet"], "--cluster"),
        (["trace", "lint", "trace.parquet"], "--cluster"),
        (["trace", "calibrate", "trace.parquet", "--target-load", "1"], "--cluster"),
        (["trace", "convert", "trace.parquet", "out.parquet"], "--map"),
        (["forecast", "--cluster", "dump.yaml"], "--history"),
        (["forecast", "--cluster", "dump.yaml"], "--submit"),
    ],
)
def test_an_input_is_refused_if_its_option_is_given_twice(
    call: list[str], option: str, harness: Callable, trace: str
) -> None:
    """Of two dumps, the first would be ignored in silence. Of other options, the last value counts."""
    ended = harness(*call, option, "one.yaml", f"{option}=two.yaml")
    assert (ended.code, ended.out) == (2, "")
    several = "; separate paths by commas" if option == "--cluster" else ""
    assert f"{option} is given 2 times, but has one value{several}\n" in ended.err
    assert harness("replay", trace, "-p", "none", "--until", "1h", "--until", "2h").code == 0


def test_an_option_of_a_reader_is_told_as_a_command_for_a_shell(harness: Callable, trace: str) -> None:
    """A mapping contains spaces."""
    ended = harness("replay", trace, "-p", "none", "--set", "map=job_id=id, queue=team")
    assert ended.code == 2
    assert "harness trace convert TRACE OUT.parquet --set 'map=job_id=id, queue=team'" in ended.err


@pytest.mark.parametrize("place", [0, 1, 4])
def test_debug_shows_where_an_error_came_from(place: int, harness: Callable, trace: str) -> None:
    """Wherever it stands; the message and the exit code stay."""
    call = ["replay", trace, "--until", "soon"]
    plain = harness(*call)
    call.insert(place, "--debug")
    ended = harness(*call)
    assert ended.code == 2
    assert ended.err.startswith("Traceback (most recent call last):\n")
    assert ended.err.endswith(plain.err)


def test_debug_behind_two_dashes_is_a_name(harness: Callable) -> None:
    """What is no option is not taken for one."""
    assert harness("replay", "--", "--debug").err == "Error: --debug: there is no such file\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-p", "raises", "--set", "when=made"], "policy raises cannot be made: RuntimeError: no licence"),
        (["-p", "raises"], "policy raises failed at 0 microseconds (0s after the origin): KeyError: 'lost'"),
        (["-p", "raises", "--set", "count=x"], "policy raises, option count: 'x' is not a whole number"),
        (["-p", "raises", "--set", "share=x"], "policy raises, option share: 'x' is not a number"),
        (["-p", "raises", "--set", "share=nan"], "policy raises, option share: 'nan' is not a finite number"),
    ],
)
def test_a_policy_that_fails_is_named(
    options: list[str], message: str, harness: Callable, trace: str, install: Callable
) -> None:
    """What a plugin raises is its error, not ours, and it leaves no run."""
    install("failing", FAILING)
    ended = harness("replay", trace, "-q", *options)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"Error: {message}")
    assert not list(Path().rglob("run.json"))


def test_an_interrupt_names_the_policy_and_the_time(harness: Callable, trace: str, install: Callable) -> None:
    """If a policy decides forever, the traceback shows the loop."""
    install("failing", FAILING)
    call = ("replay", trace, "-q", "-p", "raises", "--set", "when=interrupted")
    plain, shown = harness(*call), harness(*call, "--debug")
    said = "policy raises was at 0 microseconds (0s after the origin); --debug shows where"
    assert (plain.code, plain.err) == (130, f"Error: interrupted; no file is incomplete\nHint: {said}\n")
    assert shown.err.startswith("Traceback")
    assert shown.err.endswith(plain.err)
    assert "raise self.error" in shown.err


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        ("exits", "policy exits cannot be made: SystemExit: "),
        ("none@hook", "plugin 'exiting' failed in its hook harness_replay_started: SystemExit: "),
    ],
)
def test_a_plugin_that_calls_exit_has_failed(
    plugin: str, message: str, harness: Callable, trace: str, install: Callable
) -> None:
    """A command that did nothing never says that all is fine."""
    install("exiting", EXITING)
    ended = harness("replay", trace, "-q", "-p", plugin)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"Error: {message}\nHint: ")
    assert ended.err.endswith("--debug shows where\n")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (EXITING_IMPORT, "there is no policy 'exits'\nplugin 'exiting' failed to load: SystemExit: "),
        (EXITING_COMMANDS, "plugin 'exiting' failed to add its commands: SystemExit: "),
    ],
)
def test_a_plugin_that_calls_exit_while_it_is_loaded_is_named(
    source: str, message: str, harness: Callable, trace: str, install: Callable
) -> None:
    """It ended every command, with exit code 0."""
    install("exiting", source)
    call = ("replay", trace, "-p", "exits") if "no policy" in message else ("unheard",)
    ended = harness(*call)
    assert ended.code == 2
    assert ended.err.startswith(f"Error: {message}")


def test_a_hook_that_fails_is_named(harness: Callable, trace: str, install: Callable) -> None:
    """Whatever a plugin does wrong is told as its fault, and no run is left."""
    install("broken", HOOKS)
    ended = harness("replay", trace, "-q")
    assert (ended.code, ended.out) == (2, "")
    message = "plugin 'broken' failed in its hook harness_replay_started: RuntimeError: not today"
    assert ended.err.startswith(f"Error: {message}")
    assert not list(Path().rglob("run.json"))
    assert harness("--no-plugin", "broken", "replay", trace, "-q").code == 0


def test_a_metric_that_fails_is_named_and_the_run_is_kept(
    harness: Callable, trace: str, install: Callable
) -> None:
    """The table has all other metrics; it is tried again each time, and forgotten without the plugin."""
    install("broken", METRIC)
    for how in ("fails", "measured again"):
        ended = harness("replay", trace, "-p", "none", "-p", "none@other")
        assert ended.code == 2, how
        message = (
            "metric 'odd' of plugin 'broken' failed: TypeError: odd is 'not a number', which is not a number"
        )
        assert f"Error: none: {message}" in ended.err
        assert f"\nother: {message}" in ended.err
        assert "disruption.preemptions" in ended.out
        assert f"none: {message}" in ended.out
        assert (how in ended.err) is (how == "measured again")
    none, other = sorted(path.parent for path in Path().rglob("run.json"))
    ended = harness("compare", none, other, "--json")
    assert ended.code == 0
    assert [list(run["unmeasured"]) for run in json.loads(ended.out)["runs"]] == [["odd"], ["odd"]]
    assert "## Which one, and at what cost?\n\nNot measured\n\n- none: metric 'odd'" in harness(
        "report", none, "--format", "markdown"
    ).out.replace("**", "")
    ended = harness("--no-plugin", "broken", "replay", trace)
    assert ended.code == 0
    assert "none: measured again" in ended.err
    assert json.loads(harness("compare", none, "--json").out)["runs"][0]["unmeasured"] == {}


def test_a_defect_of_ours_has_a_code_of_its_own(harness: Callable, install: Callable) -> None:
    """It is neither a check that failed nor bad input, and --debug shows where it is."""
    install("failing", FAILING)
    ended = harness("fail", "panic")
    assert ended.code == 70
    error, hint = ended.err.rstrip("\n").split("\n")
    assert error.endswith("PanicException: index out of bounds")
    assert error.startswith("Error: unexpected ")
    assert hint == "Hint: this is a bug in harness; --debug shows where"
    assert "in fail" in harness("--debug", "fail", "panic").err


def test_a_command_of_a_plugin_that_fails_names_the_plugin(harness: Callable, install: Callable) -> None:
    """It is no defect of ours; what says by itself what is wrong, or ends the command, is told as it is."""
    install("failing", FAILING)
    ended = harness("fail", "otherwise")
    assert (ended.code, ended.out) == (2, "")
    message = "plugin 'failing' failed in its command fail: ZeroDivisionError: a defect"
    assert ended.err == f"Error: {message}\nHint: --debug shows where\n"
    assert "in fail" in harness("--debug", "fail", "otherwise").err
    assert harness("fail", "usage").err.endswith("Error: not so\n")
    assert harness("fail", "file").err == "Error: absent.txt: No such file or directory\n"
    assert (harness("fail", "exit").code, harness("fail", "click exit").code) == (3, 4)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_defect_of_a_replay_names_the_replay(
    workers: str, harness: Callable, trace: str, install: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever process it was in: a table of ten replays tells nothing of which one it was."""
    monkeypatch.setenv("PYTHONPATH", str(install("panicking", PANICKING)))
    ended = harness("replay", trace, "-p", "none", "-p", "panics@b", "--workers", workers)
    assert ended.code == 70
    error = next(line for line in ended.err.split("\n") if line.startswith("Error: "))
    assert error == "Error: unexpected panicking.PanicException: index out of bounds (in the replay b)"


@pytest.mark.parametrize("how", ["thread", "memory"])
def test_a_system_that_gives_no_thread_or_memory_is_no_defect(
    how: str, harness: Callable, install: Callable
) -> None:
    """Polars panics then, as it does for its own defects; compiled modules end without a word."""
    install("failing", FAILING)
    ended = harness("fail", how)
    assert (ended.code, ended.err.split("\n")[0]) == (2, "Error: there is not enough memory")
    assert harness("fail", "panic").code == 70


def test_choices_are_listed_without_control_characters(harness: Callable) -> None:
    """Click sets them apart by tabs."""
    ended = harness("completion")
    assert ended.code == 2
    assert ended.err.endswith("Choose from:\n  bash,\n  zsh,\n  fish\n")


def test_a_sweep_of_a_trace_without_plugins_asks_for_them(harness: Callable, trace: str) -> None:
    """By the option, and not by a field of a specification."""
    ended = harness("sweep", trace)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"Error: which plugins should replay {trace}?\nHint: name each plugin with -p NAME\n"


def test_a_file_that_is_not_there_is_named(harness: Callable, install: Callable) -> None:
    """Even where nobody thought of it."""
    install("failing", FAILING)
    assert harness("fail", "file") == (2, "", "Error: absent.txt: No such file or directory\n")


def test_the_module_runs_as_the_command_does(trace: str, folder: Path) -> None:
    """`python -m harness` is the command where scripts are not on the path."""
    ended = subprocess.run(
        [sys.executable, "-m", "harness", "replay", "absent"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "Error: absent: there is no such file\n"
