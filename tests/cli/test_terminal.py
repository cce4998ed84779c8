"""What reaches a terminal, a pipe and a log: progress, colours, interruptions, names that nobody vetted."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import polars as pl
import pytest
from cli_environment import LONG, called, clean_environment
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.progress import Count
from harness.cli.screen import guard_terminals, harmless

SLOW = """
    import time
    from os import getpid
    from pathlib import Path

    import harness

    class Slow:
        def __init__(self, cluster, view, options):
            self.view, self.pause, self.waiting = view, options["pause"], []
            Path(f"begun.{getpid()}").touch()  # its replay is under way

        def submit(self, job, pods, now):
            self.waiting.append(job)

        def release(self, job, pods, now, why):
            pass

        def cycle(self, now):
            time.sleep(self.pause / 1e6)
            while self.waiting and self.view.fits(self.waiting[0]):
                yield harness.Admit(self.waiting.pop(0))

    @harness.hookimpl
    def harness_register_policies(register):
        pause = harness.Option("pause", 20, "microseconds to sleep in a cycle", type=int)
        register(harness.PolicySpec("slow", Slow, help="takes its time", options=(pause,)))
"""
EVIL = "q\x1b[2J\x07\x9b31m\r\u202equeue"
HARNESS = str(Path(sys.executable).with_name("harness"))


@pytest.fixture
def long_trace(folder: Path, write_trace: Callable[..., Path]) -> Path:
    """Three thousand jobs, one a second."""
    rows = [{"submit_time": number, "duration": 1} for number in range(3_000)]
    return Path(shutil.move(write_trace(*rows), folder / "long.parquet"))


def seen(folder: Path, *command: object) -> str:
    """What a terminal gets from a command's stdout and stderr."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [HARNESS, *map(str, command)], cwd=folder, env=clean_environment(), stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side has closed it
            break
        shown += part
    process.wait(timeout=LONG)
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def on_terminal(folder: Path, command: list[str], columns: int = 80, **environment: str) -> tuple[str, str]:
    """What a command writes to stdout, which is a pipe, and to stderr, which is a terminal."""
    ours, theirs = terminal(columns)
    process = subprocess.Popen(
        command, cwd=folder, env=clean_environment() | environment, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    shown = all_of(ours)
    out, _ = process.communicate(timeout=LONG)
    assert process.returncode == 0, shown
    return out.decode(), shown.decode()


def terminal(columns: int) -> tuple[int, int]:
    """A terminal of 24 lines: our side, and that of a command."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return ours, theirs


def all_of(ours: int) -> bytes:
    """What comes from the other side of a terminal until it is closed."""
    shown = b""
    while select.select([ours], [], [], LONG)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side has closed it
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return shown


def here(
    *words: object, on: tuple[str, ...] = (), columns: int = 80, encoding: str = "utf-8", **environment: str
) -> tuple[bytes, bytes]:
    """What a command of this process writes to stdout, and to a terminal in place of the streams `on`."""
    ours, theirs = terminal(columns)
    found: list[bytes] = []
    reader = Thread(target=lambda: found.append(all_of(ours)))
    reader.start()
    piped = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CI", "NO_COLOR", "FORCE_COLOR"):
            patch.delenv(name, raising=False)
        for name, value in ({"TERM": "xterm"} | environment).items():
            patch.setenv(name, value)
        patch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
        out, shown = io.TextIOWrapper(piped, encoding), os.fdopen(theirs, "w", encoding="utf-8")
        for name in ("stdout", "stderr"):
            patch.setattr(sys, name, shown if name in on else out if name == "stdout" else io.StringIO())
        guard_terminals()
        code = called([str(word) for word in words])
        out.flush()
        shown.close()
    reader.join()
    assert code == 0
    return piped.getvalue(), found[0].replace(b"\r\n", b"\n")


def test_progress_is_drawn_on_a_terminal(folder: Path, long_trace: Path, install: Callable) -> None:
    """Jobs, simulated time, rate and time left, in one line that fits the terminal and is gone in the end.

    Nothing is said in colours, so that NO_COLOR needs no special case.
    """
    site = install("slow_policy", SLOW)
    command = [HARNESS, "replay", "long.parquet", "-p", "slow"]
    out, shown = on_terminal(folder, command, PYTHONPATH=str(site))
    drawn = re.findall(r"\r\x1b\[K([^\r\n\x1b]+)", shown)
    assert any(
        re.match(r"slow █+░* \d+ %  [\d,]+ of 3,000 jobs  \S+ simulated  [\d,]+ jobs/s  \S+ left$", line)
        for line in drawn
    ), shown
    assert out.startswith("metric")
    assert "\r" not in out
    _, last = shown.rsplit("\x1b[K", 1)
    assert last.startswith("slow: 3,000 jobs in")
    again, narrow = (
        written.decode()
        for written in here(*command[1:], "--force", on=("stderr",), columns=30, FORCE_COLOR="1")
    )
    assert not re.search(r"\x1b\[[0-9;]*m", out + shown + again + narrow)
    lines = re.findall(r"\r\x1b\[K([^\r\n\x1b]+)", narrow)
    assert lines
    assert all(len(line) < 30 for line in lines if "%" in line)


@pytest.mark.parametrize(
    ("options", "environment"), [([], {"CI": "true"}), ([], {"TERM": "dumb"}), (["-q"], {})]
)
def test_no_progress_where_it_is_not_wanted(
    options: list[str], environment: dict[str, str], folder: Path, long_trace: Path, install: Callable
) -> None:
    """Under CI a terminal is a log; a dumb one cannot go back in its line; `-q` wants nothing."""
    install("slow_policy", SLOW)
    _, shown = here("replay", "long.parquet", "-p", "slow", *options, on=("stderr",), **environment)
    assert b"jobs/s" not in shown
    assert b"\x1b" not in shown
    assert bool(shown) is (not options)


def test_no_progress_and_no_codes_in_a_pipe(harness: Callable, long_trace: Path, install: Callable) -> None:
    """What is piped or logged is plain text."""
    install("slow_policy", SLOW)
    ended = harness("replay", "long.parquet", "-p", "slow")
    assert ended.code == 0
    assert "\x1b" not in ended.out + ended.err
    assert "\r" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.nightly),
    ],
)
def test_an_interrupted_replay_leaves_nothing(
    number: signal.Signals, code: int, folder: Path, long_trace: Path, install: Callable
) -> None:
    """One line says so; the run of an earlier plugin stays, the unfinished one leaves no trace."""
    site = install("slow_policy", SLOW)
    process = subprocess.Popen(
        [HARNESS, "replay", "long.parquet", "-q", "-p", "none", "-p", "slow", "--set", "pause=5000"],
        cwd=folder,
        env=clean_environment() | {"PYTHONPATH": str(site)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # the tests may run under nohup
    )
    runs = folder / "results" / "long"
    deadline = time.monotonic() + LONG
    while not list(folder.glob("begun.*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=LONG)
    assert process.returncode == code
    assert out == ""
    assert re.fullmatch(r"Error: interrupted; no file is incomplete\n(Hint: policy slow was at .*\n)?", err)
    assert [path.name.split("-")[0] for path in runs.iterdir()] == ["none"]


SEVERAL = SLOW.replace("import time", "import os\n    import time").replace(
    '    register(harness.PolicySpec("slow"',
    """    class Killed(Slow):
            def cycle(self, now):
                os.kill(os.getpid(), 9)

        class Wrong(Slow):
            def cycle(self, now):
                yield harness.Wake(0)

        register(harness.PolicySpec("killed", Killed, help="its process is killed", options=(pause,)))
        register(harness.PolicySpec("wrong", Wrong, help="decides what cannot be", options=(pause,)))
        register(harness.PolicySpec("slow\"""",
)


_TWO = ("--workers", "2")  # so short ones would be replayed in one process


@pytest.mark.parametrize("ending", ["ctrl-C", pytest.param("killed", marks=pytest.mark.nightly)])
def test_replays_side_by_side_end_together(
    ending: str, folder: Path, long_trace: Path, install: Callable
) -> None:
    """Ctrl-C reaches all processes and is told once; who is killed leaves none behind."""
    site = install("slow_policy", SLOW)
    process = subprocess.Popen(
        [HARNESS, "replay", "long.parquet", "-p", "slow@a", "-p", "slow@b", *_TWO, "--set", "pause=5000"],
        cwd=folder,
        env=clean_environment() | {"PYTHONPATH": str(site)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + LONG
    while len(list(folder.glob("begun.*"))) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    if ending == "ctrl-C":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.kill()
    out, err = process.communicate(timeout=LONG)  # until every process has closed them
    if ending == "ctrl-C":
        assert process.returncode == 130
        assert err.endswith("\nError: interrupted; no file is incomplete\n")
        assert "Traceback" not in err
    assert out == ""
    assert not list(folder.rglob(".harness-*"))
    assert not list(folder.rglob("run.json"))


@pytest.mark.nightly
def test_what_fails_side_by_side_is_named_and_the_others_are_kept(
    folder: Path, long_trace: Path, shell: Callable, install: Callable
) -> None:
    """One message with all that failed, exit code 2 and no table; the same command answers what was kept."""
    site = install("slow_policy", SEVERAL)
    line = "harness replay long.parquet --until 100s -p slow -p killed -p none -p wrong --workers 2"
    first, again = (shell(line, PYTHONPATH=str(site)) for _ in range(2))
    for ended, kept in ((first, "kept in"), (again, "stored result")):
        assert (ended.code, ended.out) == (2, ""), ended.err
        told = [each for each in ended.err.split("\n") if each.startswith(("slow:", "none:"))]
        assert [each.split(":")[0] for each in told] == ["slow", "none"]
        assert all(kept in each for each in told)
        _, _, message = ended.err.partition("Error: ")
        assert message.split("\n")[0].startswith("killed: its process was ended by SIGKILL")
        assert message.split("\n")[1].startswith("wrong: policy wrong ")
        hint = "Hint: run fewer replays at the same time, for example with --workers 1"
        assert message.split("\n")[2] == hint
    assert sorted(path.name.split("-")[0] for path in (folder / "results/long").iterdir()) == ["none", "slow"]


SIDE_BY_SIDE = """
import time
from harness.cli.progress import ProgressBars

with ProgressBars(["a", "b", "c"], 100, shown=True) as progress:
    for number in range(1, 4):
        for replay in (1, 0):
            time.sleep(0.11)
            progress.watch(replay, number * 1_000_000, number * 10)
    progress.over(1)
    time.sleep(0.11)
    progress.watch(2, 1_000_000, 50)
    progress.over(0)
    progress.say(["a: over", "b: over"])
    progress.over(2)
    progress.say(["c: over"])
"""


def test_progress_of_replays_side_by_side_is_a_line_each(folder: Path) -> None:
    """In the order of the command; what is said stands above them, and in the end they are gone."""
    _, shown = on_terminal(folder, [sys.executable, "-c", SIDE_BY_SIDE])
    screen = [""]
    seen = [""]
    for sign in re.findall(r"\x1b\[A|\x1b\[K|[\r\n]|[^\x1b\r\n]+", shown):  # a terminal that knows these
        if sign == "\n":
            screen.append("")
        elif sign == "\x1b[A":
            assert screen.pop() == ""
        elif sign == "\x1b[K":
            screen[-1] = ""
        elif sign != "\r":
            screen[-1] += sign
        drawn = "".join(line[0] for line in screen if "jobs/s" in line)
        if drawn != seen[-1]:
            seen.append(drawn)
    assert "ab" in seen
    assert "ac" in seen
    assert max(map(len, seen)) == 2
    assert screen == ["a: over", "b: over", "c: over", ""]


def test_a_log_gets_a_line_at_the_beginning_and_then_every_half_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most; none when all is finished, and none at all if progress is not shown. stdout gets nothing."""
    now = 100.0
    monkeypatch.setattr("harness.cli.progress.time.monotonic", lambda: now)
    shown, hidden = (Count("simulating", "future", shown=shown) for shown in (True, False))
    for done in range(1001):
        shown.update(done, 1000)
        hidden.update(done, 1000)
        now += 0.125
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "simulating 1,000 futures",
        *(f"simulating 1,000 futures: {done} done" for done in (240, 480, 720, 960)),
    ]


def test_a_replay_goes_on_where_hang_ups_are_ignored(
    shell: Callable, long_trace: Path, install: Callable
) -> None:
    """`nohup` means what it says."""
    site = install("slow_policy", SLOW)
    begun = "until ls begun.* >/dev/null 2>&1 || ! kill -0 $!; do sleep 0.02; done"
    replay = "harness replay long.parquet -q -p slow --until 1000s --set pause=1000"
    ended = shell(f"trap '' HUP; {replay} & {begun}; kill -HUP $!; wait $!", PYTHONPATH=str(site))
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    "line",
    [
        "harness plugins",
        *(
            pytest.param(f"harness {each}", marks=pytest.mark.nightly)
            for each in ("--help", "plugins --json")
        ),
    ],
)
def test_a_reader_may_stop_reading(line: str, shell: Callable) -> None:
    """A broken pipe is no error and no message."""
    ended = shell(f"set -o pipefail; {line} | true; echo ${{PIPESTATUS[0]}}; {line} | head -1 >/dev/null")
    assert (ended.code, ended.out, ended.err) == (0, "0\n", "")


def test_a_full_disk_behind_stdout_is_an_error(shell: Callable) -> None:
    """Output that cannot be written is not lost in silence."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    ended = shell("harness plugins > /dev/full")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "Error: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("closed", [pytest.param("2>&-", marks=pytest.mark.nightly), "<&- 2>&-"])
def test_a_stream_that_is_closed_leads_nowhere(closed: str, shell: Callable, long_trace: Path) -> None:
    """Nobody listens to messages, and all else is as it would be."""
    ended = shell(f"harness replay long.parquet --until 1s {closed}; echo $?; ls results/long | wc -l")
    assert ended.out.split("\n")[-3:] == ["0", "1", ""]
    assert "Error" not in ended.err


@pytest.mark.parametrize("closed", [pytest.param(">&-", marks=pytest.mark.nightly), "<&- >&-"])
def test_a_closed_stdout_is_an_error(closed: str, shell: Callable, long_trace: Path) -> None:
    """Results that nobody can see are no success, and nothing is replayed for them."""
    ended = shell(f"harness replay long.parquet --until 1s {closed}; echo $?; ls results 2>/dev/null | wc -l")
    assert ended.out == "2\n0\n"
    assert ended.err.startswith("Error: stdout is closed, so the results would be lost\nHint: ")
    assert shell(f"harness plugins {closed} 2>&-").code == 2


def test_a_terminal_of_few_signs_gets_others(long_trace: Path) -> None:
    """Where `─` cannot be encoded something else stands, and JSON is ASCII everywhere."""
    line = ("replay", "long.parquet", "-q")
    assert b"??????" in here(*line, encoding="latin-1")[0]
    assert json.loads(here(*line, "--json", encoding="latin-1")[0].decode("ascii"))["schema"] == "1"


def test_names_in_a_trace_cannot_steer_the_terminal(
    harness: Callable, folder: Path, write_trace: Callable[..., Path]
) -> None:
    """Control characters of queues, jobs and users never reach it, in tables, errors and JSON."""
    trace = write_trace(
        {"job_id": EVIL, "queue": EVIL, "user": EVIL, "request.cpu": 1000},
        {"job_id": "b", "queue": "plain", "user": "u", "request.cpu": 1000},
        name="evil.parquet",
    )
    broken = write_trace({"job_id": EVIL, "queue": EVIL, "duration": -1}, name="broken.parquet")
    huge = write_trace({"job_id": EVIL, "queue": "q", "request.cpu": 9_000_000}, name="huge.parquet")
    (folder / "cluster.yaml").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": EVIL},
                "status": {"allocatable": {"cpu": "1", EVIL: "1"}},
            }
        )
    )
    calls: list[tuple[object, ...]] = [
        ("replay", trace),
        ("replay", trace, "--json"),
        ("trace", "info", trace),
        ("trace", "info", trace, "--json"),
        ("trace", "check", trace),
        ("trace", "check", broken),
        ("replay", broken),
        ("replay", huge, "--cluster", "cluster.yaml"),
        ("cluster", "check", "cluster.yaml"),
        ("cluster", "check", "cluster.yaml", "--json"),
        ("replay", trace, "-p", EVIL),
        ("replay", trace, "--set", EVIL),
        ("replay", EVIL),
        ("compare", EVIL),
        (EVIL,),
        ("replay", trace, EVIL),
    ]
    for call in calls:
        ended = harness(*call)
        shown = ended.out + ended.err
        assert shown, call
        steering = {char for char in shown if unicodedata.category(char)[0] == "C"} - {"\n"}
        assert not steering, (call, steering)
    (run,) = (folder / "results" / "evil").iterdir()
    for scope in ("queue", f"queue={EVIL}", f"queue={EVIL}x"):
        for json_too in ([], ["--json"]):
            ended = harness("compare", run, "--scope", scope, *json_too)
            steering = {char for char in ended.out + ended.err if unicodedata.category(char)[0] == "C"}
            assert steering <= {"\n"}, (scope, steering)
    assert pl.read_parquet(run / "jobs.parquet")["queue"].to_list() == [EVIL, "plain"]


def test_everything_that_goes_to_a_terminal_is_harmless_and_a_pipe_gets_the_bytes(
    harness: Callable, folder: Path, write_trace: Callable[..., Path]
) -> None:
    """CSV and OpenMetrics, too, which are made for other programs; also what a plugin or a library prints."""
    rows = [{"job_id": EVIL, "queue": EVIL, "request.cpu": 1000}, {"queue": "b", "request.cpu": 1000}]
    trace = write_trace(*rows, name="evil.parquet")
    harness("replay", trace, "-p", "none@a", "-p", "none@b", "--set", "b.order=fifo")
    runs = sorted((folder / "results" / "evil").iterdir())
    csv = ("compare", *runs, "--scope", "queue", "--format", "csv")
    assert here(*csv, on=("stdout", "stderr"))[1].decode() == seen(folder, *csv)
    for call in (csv, ("export", runs[0], "--format", "openmetrics", "-o", "-")):
        shown = here(*call, on=("stdout", "stderr"))[1].decode()
        steering = {char for char in shown if unicodedata.category(char)[0] == "C"} - {"\n"}
        assert not steering, (call, steering)
        assert "q\N{REPLACEMENT CHARACTER}[2J" in shown
        piped = here(*call)[0].decode()
        assert "q\x1b[2J\x07\x9b31m\r" in piped
        assert harmless(piped) in shown


@given(st.text())
def test_text_for_a_terminal_keeps_its_letters_and_lines(text: str) -> None:
    """And nothing else that a terminal could obey."""
    shown = harmless(text)
    assert len(shown) == len(text)
    assert not {char for char in shown if unicodedata.category(char)[0] == "C"} - {"\n", "\t"}
    assert [char for char in shown if char in "\n\t"] == [char for char in text if char in "\n\t"]


def test_tables_stay_aligned_whatever_names_hold(
    harness: Callable, folder: Path, write_trace: Callable[..., Path]
) -> None:
    """Spaces, wide and combining characters: every figure of a column ends in the same place."""
    queues = ["team a", "日本語のキュー", "ﬁne", "e\N{COMBINING ACUTE ACCENT}quipe", "กำลัง", "x" * 90]
    trace = write_trace(*({"queue": name} for name in queues))
    harness("replay", trace)
    (run,) = (folder / "results" / "trace").iterdir()
    out = harness("compare", run, "--scope", "queue", "--metric", "wait.total.mean").out
    _, _, *rows = out.rstrip("\n").split("\n")
    assert len(rows) == len(queues)
    wide = {
        sum(
            0
            if unicodedata.category(char) == "Mn"
            else 2
            if unicodedata.east_asian_width(char) in "WF"
            else 1
            for char in row
        )
        for row in rows
    }
    assert len(wide) == 1
    assert "x" * 90 in out  # a pipe has room for whole names
    assert "{queue=team a}" in out


def table_of(text: str) -> list[str]:
    """The lines of its tables."""
    lines = text.split("\n")
    first = next(number for number, line in enumerate(lines) if line.startswith("metric"))
    last = next(number for number, line in enumerate(lines) if line.startswith("▲"))
    return [re.sub("\x1b\\[[0-9;]*m", "", line) for line in lines[first:last]]


def test_a_table_fits_the_terminal_and_its_verdicts_have_colours(
    folder: Path, harness: Callable, write_trace: Callable[..., Path]
) -> None:
    """Without intervals first, then a block a run; NO_COLOR and pipes have no colours, a pipe all columns."""
    rows = ({"submit_time": n, "duration": 60, "priority": n % 3, "queue": "ab"[n % 2]} for n in range(300))
    trace = write_trace(*rows)
    runs = ("-p", "none@plain", "-p", "none@fifo", "-p", "none@strict")
    options = ("--set", "fifo.order=fifo", "--set", "strict.blocking=strict", "--scale-cluster", "1/2")
    assert harness("replay", trace, *runs, *options, "-q").code == 0
    line = ("compare", *sorted(Path("results/trace").iterdir()), "--baseline", "plain", "--metric", "wait.*")
    piped = harness(*line).out
    assert "\x1b" not in piped

    def shown_on(columns: int, **environment: str) -> str:
        words = (*line, "--metric", "makespan", "--shake", "3")
        return here(*words, on=("stdout", "stderr"), COLUMNS=str(columns), **environment)[1].decode()

    wide = shown_on(300)
    assert "9 replays of 3 twins (arrivals ±30s; seed 0)" in wide
    assert any("[" in row for row in table_of(wide))
    assert "too narrow" not in wide
    whole = max(map(len, table_of(wide)))
    middle = shown_on(whole - 1, NO_COLOR="1")
    assert "\x1b" not in middle
    assert "3 twins, none replayed, 3 stored before" in middle
    assert "too narrow for intervals" in middle
    assert sum(row.startswith("metric") for row in table_of(middle)) == 1
    least = max(map(len, table_of(middle)))
    narrow = shown_on(least - 1)
    assert sum(row.startswith("metric") for row in table_of(narrow)) == 2
    assert max(map(len, table_of(narrow))) < least
    signs = [row for row in wide.split("\n")[3:] if re.search("[▲▼△▽]", row) and "better" not in row]
    assert signs
    assert all("\x1b[3" in row for row in signs)
