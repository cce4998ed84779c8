"""`harness.evaluate`: scores of classes, files and texts, and what contains policies that attack it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bad_policies import LikeNone

import harness
from harness import Evaluation
from harness.base.errors import OptionError
from harness.studies.benchmark.suite import Suite

FIRST_FIT = '''
from harness import Bind

class FirstFit:
    """Binds what fits, oldest first."""

    def __init__(self, cluster, view, options):
        self.view, self.nodes, self.waiting = view, list(cluster.nodes), []

    def submit(self, job, pods, now):
        self.waiting += [(job, pod) for pod in pods]

    def release(self, job, pods, now, why):
        pass

    def cycle(self, now):
        for job, pod in list(self.waiting):
            asks = job.requests_of(range(pod, pod + 1))
            for node in self.nodes:
                free = self.view.free_on(node)
                if all(free.get(name, 0) >= amount for name, amount in asks.items()):
                    self.waiting.remove((job, pod))
                    yield Bind(job, range(pod, pod + 1), node)
                    break
'''

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems hold less")

Evaluates = Callable[..., Evaluation]


@pytest.fixture(scope="module")
def evaluate(small: Suite, scale: Path) -> Evaluates:
    """Evaluates a policy on one twin of the small task."""

    def of(policy: Any, **chosen: Any) -> Evaluation:
        given = {"twins": 1, "output": scale, "brief": True, **chosen}
        return harness.evaluate(policy, small.task("morning"), **given)

    return of


def attacked(code: str) -> str:
    """The source of first fit, which does something else first when it is asked the first time."""
    lines = "".join(f"        {line}\n" for line in code.strip().splitlines())
    return FIRST_FIT.replace("    def cycle(self, now):\n", f"    def cycle(self, now):\n{lines}")


@pytest.fixture(scope="module")
def honest(evaluate: Evaluates) -> Evaluation:
    """First fit without an attack."""
    return evaluate(FIRST_FIT)


def test_equal_policies_have_equal_evaluations_however_they_are_given(
    evaluate: Evaluates, honest: Evaluation, tmp_path: Path
) -> None:
    """As a text, a file, and once more; the score is that of the same replay elsewhere."""
    (tmp_path / "policy.py").write_text(FIRST_FIT)
    assert honest.error == ""
    assert honest.score is not None
    assert evaluate(tmp_path / "policy.py") == honest == evaluate(FIRST_FIT)
    assert set(honest.groups) == {"waited", "disrupted"}
    assert honest.metrics["disruption.lost{resource=nvidia.com/gpu}"] == 0


def test_an_importable_class_and_a_registered_name_are_policies(evaluate: Evaluates) -> None:
    """A class that decides as `none` does has the score of `none`."""
    assert evaluate(LikeNone).score == evaluate("none").score


def test_a_whole_evaluation_tells_what_went_badly(evaluate: Evaluates) -> None:
    """The worst queue, three jobs explained, where it lost most, and an interval over twins."""
    found = evaluate(FIRST_FIT, twins=2, brief=False)
    assert found.error == ""
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.score < found.high
    assert "delayed most" in found.worst_queue
    assert "scores" in found.lost_most
    assert len(found.jobs) == 3
    assert all(text.startswith(f"job {name} of queue") for name, text in found.jobs.items())


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise SystemExit(3)", "SystemExit"),
        ("import os; os._exit(0)", "ended without an answer"),
        ("raise ValueError('mine')", "mine"),
        ("while True: pass", "took longer than 2"),
        ("import time; time.sleep(60)", "took longer than 2"),
        ("self.kept = bytearray(1 << 31)", "memory"),
        ("yield Bind(self.waiting[0][0], range(9, 10), 'nowhere')", "nowhere"),
    ],
)
def test_what_a_policy_fails_with_is_its_result(code: str, told: str, evaluate: Evaluates) -> None:
    """An error in words, and nothing else; the next evaluation is not affected."""
    limit = 2 if told == "took longer than 2" else 30  # a busy machine must not be faster to give up
    found = evaluate(attacked(code), seconds=limit, memory="1Gi")
    assert found.score is None
    assert told in found.error


@linux
@pytest.mark.parametrize(
    "code",
    [
        "import os; os.fork()",
        "import subprocess; subprocess.run(['true'])",
        "import socket; socket.socket()",
        "import os; os.kill(os.getppid(), 9)",
        "open('PLACE/stolen', 'w')",
        "import os; os.remove('PLACE/there')",
        "open('PLACE/there').read()",
        "import os; os.rename('PLACE/there', 'PLACE/gone')",
        "import os, tempfile; os.symlink('PLACE/there', tempfile.gettempdir() + '/link')",
        "import os, tempfile; os.mkfifo(tempfile.gettempdir() + '/pipe')",
    ],
)
def test_files_processes_and_the_network_are_out_of_reach(
    code: str, evaluate: Evaluates, tmp_path: Path
) -> None:
    """As far as the system holds it, which the evaluation says."""
    (tmp_path / "there").write_text("mine")
    found = evaluate(attacked(code.replace("PLACE", str(tmp_path))))
    if not {"files", "processes and network"} <= set(found.held):
        pytest.skip("this system does not hold files and processes")
    assert "PermissionError" in found.error or "ot permitted" in found.error
    assert (tmp_path / "there").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_edited_metrics_change_nothing(evaluate: Evaluates, honest: Evaluation) -> None:
    """They are computed in a process that never runs the policy."""
    code = """
import harness.analysis.metrics as metrics, harness.runs.measuring as measuring
measuring.measure = lambda *given: ([], {})
for name in vars(metrics).copy():
    if name.startswith('_') and callable(vars(metrics)[name]):
        setattr(metrics, name, lambda *given: [])
"""
    assert evaluate(attacked(code)) == honest


def test_forged_tables_are_refused(evaluate: Evaluates) -> None:
    """A recorder that lets jobs start when they arrive is found out by the decisions."""
    code = """
import polars, harness.runs.replaying as replaying
seal = replaying.seal_tables
def forged(folder, names):
    path = folder / 'jobs.parquet'
    polars.read_parquet(path).with_columns(start_time='submit_time').write_parquet(path)
    return seal(folder, names)
replaying.seal_tables = forged
"""
    found = evaluate(attacked(code), brief=False)
    assert found.score is None
    assert "twin 1 is refused: jobs.start_time" in found.error


def test_an_answer_of_its_own_changes_nothing(evaluate: Evaluates, honest: Evaluation) -> None:
    """What the replaying process says of itself is no more than whether it ended."""
    code = """
import json, pathlib, tempfile
answer = {'done': True, 'rows': [[]], 'held': ['everything'] * 9, 'score': 9}
pathlib.Path(tempfile.gettempdir(), 'answer.json').write_text(json.dumps(answer))
import os; os._exit(0)
"""
    found = evaluate(attacked(code))
    assert found.score is None
    assert "twin 1 has 0 runs" in found.error
    assert found.held in ((), honest.held)


def test_what_it_prints_is_kept_and_bounded(evaluate: Evaluates) -> None:
    """Its beginning, however much it is."""
    found = evaluate(attacked("print('here' * 100_000)\nimport sys; sys.stdout.flush(); raise SystemExit"))
    assert found.printed.startswith("herehere")
    assert len(found.printed) <= 20_000


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("x = 1\n", "contains none"),
        ("def f(:\n", "cannot be loaded"),
        ("import nothing_there\n", "cannot be loaded"),
    ],
)
def test_a_text_without_a_policy_is_an_error(policy: str, told: str, evaluate: Evaluates) -> None:
    """It says what is missing."""
    assert told in evaluate(policy).error


def test_a_file_of_a_policy_may_begin_with_a_byte_order_mark(evaluate: Evaluates, tmp_path: Path) -> None:
    """As Python reads such a file."""
    path = tmp_path / "policy.py"
    path.write_text(f"\ufeff{FIRST_FIT}", encoding="utf-8")
    assert evaluate(path).error == ""


def test_what_cannot_be_asked_is_refused(evaluate: Evaluates, tmp_path: Path) -> None:
    """Before anything is replayed: a file that is not there, and bounds that are none."""
    with pytest.raises(OptionError, match="cannot be read"):
        evaluate(tmp_path / "none.py")
    with pytest.raises(OptionError, match="seconds"):
        evaluate(FIRST_FIT, seconds=0)
    with pytest.raises(OptionError, match="memory"):
        evaluate(FIRST_FIT, memory="much")
