"""Provides `harness.evaluate`, which scores a policy in a task and is fast enough for thousands of calls."""

from __future__ import annotations

import atexit
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from harness.base.errors import InputError, OptionError
from harness.base.frozen import Frozen
from harness.base.memo import Memo
from harness.base.units import parse_quantity, round_up
from harness.plugins import load
from harness.plugins.measurement import Measurement
from harness.studies.benchmark.judging import Twin
from harness.studies.benchmark.policy_source import packed
from harness.studies.benchmark.running import Reference, reference
from harness.studies.benchmark.scores import Score, values_of_rows
from harness.studies.benchmark.server import received, send
from harness.studies.benchmark.suite import NEWEST, Task, load_suite
from harness.studies.experiments.preparation import prepared
from harness.studies.experiments.specification import PLUGIN, SEED, Arm

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""The environment variables that are passed to processes with policies. None of them contains a secret."""

_SIZE = 1 << 28


@dataclass(frozen=True)
class Evaluation:
    """The result of a policy in a task, which is the same for equal policies.

    Attributes:
        task: the name of the task. If its weeks were drawn with a seed, the name contains the seed.
        error: the reason why the policy failed, or "".
        score: the score on a scale from 0 for the worst built-in policy to 1 for the best; None if there is
            an error.
        low, high: the ends of the 95 % interval of the score over twins; None for a single twin.
        groups: the score of each group that counts: `served`, `waited`, `shared` and `disrupted`.
        metrics: the mean of each objective over twins.
        lost_most: a sentence about the objective with the lowest score.
        worst_queue: a sentence about the queue whose jobs are delayed most in the first twin.
        jobs: the history of each of the three jobs with the longest delays in the first twin.
        printed: the beginning of the policy's output.
        held: the limits that the system enforces. Each is `memory`, `output`, `files`, or `processes and
            network`.
    """

    task: str
    error: str = ""
    score: float | None = None
    low: float | None = None
    high: float | None = None
    groups: Mapping[str, float] = field(default_factory=Frozen)
    metrics: Mapping[str, float | None] = field(default_factory=Frozen)
    lost_most: str = ""
    worst_queue: str = ""
    jobs: Mapping[str, str] = field(default_factory=Frozen)
    printed: str = ""
    held: tuple[str, ...] = ()


def evaluate(
    policy: str | Path | type,
    task: str | Task = "mix",
    *,
    options: Mapping[str, Any] | None = None,
    seed: int | None = None,
    twins: int | None = None,
    seconds: float = 60,
    memory: str | int = "2Gi",
    brief: bool = False,
    suite: str | Path = NEWEST,
    output: str | Path = "results/bench",
) -> Evaluation:
    """Replays a policy on the twins of a task in a separate process, and scores it.

    Twins are versions of the task's trace with slightly shifted arrivals.

    The first evaluation of a task also replays the built-in policies, because they define the scale of
    scores. harness keeps their runs.

    Args:
        policy: a class, a `.py` file with a class, the source text of a class, or the name of a registered
            policy.
        task: a task, or the name of a task in the suite.
        options: the options of the policy.
        seed: the seed for drawing new weeks from the recorded trace. None selects the weeks that the task
            defines.
        twins: the number of twins to replay, at least 1; by default, the task defines it.
        seconds: the time limit for all replays together.
        memory: the memory limit of the process, as a number of bytes or as a text such as `2Gi`.
        brief: whether to return only the score and the metrics. In this case, no job is explained. The
            independent checker does not check the decisions either, so forged tables remain unnoticed.
        suite: the name or the file of the suite that contains the task.
        output: the folder for the runs of built-in policies, with one folder per suite.

    Returns: The evaluation. If the policy fails, `error` says why.

    Raises:
        InputError: an argument is invalid, or the files of the task have changed.
        OptionError: the source code of the policy can't be found.
    """
    given = packed(policy)
    if not 0 < seconds < 1e6:
        raise OptionError(f"seconds: {seconds} is not a number between 0 and 1000000")
    found = load_suite(suite).task(task) if isinstance(task, str) else task
    ready = _ready(found, seed, found.twins if twins is None else twins, Path(output))
    called = found.called(seed)
    with TemporaryDirectory(prefix="harness-evaluation-") as folder:
        answer = _server.ask(
            {
                "digest": ready.digest,
                "policy": given,
                "options": dict(options or {}),
                "seconds": seconds,
                "memory": _bytes(memory),
                "size": _SIZE,
                "brief": brief,
                "path": [str(Path(each).resolve()) for each in sys.path],
                "folder": str(Path(folder).resolve()),
            },
            ready.inputs,
        )
    about: dict[str, Any] = {"printed": answer.get("printed", ""), "held": tuple(answer.get("held", ()))}
    if "error" in answer:
        return Evaluation(called, error=answer["error"], **about)
    rows = [[Measurement(*row) for row in of] for of in answer["rows"]]
    score = ready.reference.score(values_of_rows(rows, found))
    return Evaluation(
        called,
        score=score.score.value,
        low=score.score.low,
        high=score.score.high,
        groups=Frozen({group: of.value for group, of in score.groups.items()}),
        metrics=Frozen(score.objectives),
        lost_most=_lost_most(ready.reference, score),
        worst_queue=answer["queue"],
        jobs=Frozen(answer["jobs"]),
        **about,
    )


@dataclass(frozen=True)
class _Ready:
    reference: Reference
    inputs: bytes
    digest: str


_known: Memo[Any, _Ready] = Memo(16)


def _ready(task: Task, seed: int | None, twins: int, output: Path) -> _Ready:
    fixed = (task.suite, task.name, *task.sums.values(), *task.settings.items())
    key = (fixed, seed, twins, output)
    if key not in _known:
        plugins = load()
        scale = reference(task, plugins, output / task.suite, seed=seed, workers=1)
        arms = [Arm(name, name) for name in task.built_in]
        bench = prepared(task.spec(arms, seed, twins=twins, keep="metrics"), plugins)
        assert bench.spec.seeds is not None
        inputs = [
            Twin.by([bench.request({PLUGIN: arm.label, SEED: number}) for arm in arms], plugins)
            for number in bench.spec.seeds.numbers
        ]
        content = pickle.dumps(inputs)
        _known[key] = _Ready(scale, content, sha256(content).hexdigest())
    return _known[key]


class _Server:
    """The process that copies itself for each evaluation. It starts at the first evaluation."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._sent: set[str] = set()
        self._lock = Lock()

    def ask(self, question: dict[str, Any], inputs: bytes) -> dict[str, Any]:
        if not hasattr(os, "fork"):
            raise InputError("evaluation needs copies of a process, but this system cannot make them")
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            if question["digest"] not in self._sent:
                question["inputs"] = {question["digest"]: inputs}
                self._sent.add(question["digest"])
            try:
                send(process.stdin, pickle.dumps(question))
                message = received(process.stdout)
            except OSError:
                message = None
            if message is None:
                self.end()
                raise InputError("the process that evaluates policies has died", hint="evaluate again")
            answer: dict[str, Any] = json.loads(message)
            return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._sent.clear()
            environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
            self._process = subprocess.Popen(
                [sys.executable, "-m", "harness.studies.benchmark.server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        return self._process

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


_server = _Server()
atexit.register(_server.end)


def _lost_most(scale: Reference, score: Score) -> str:
    found = [
        (each.score(score.objectives.get(each.objective)), each.objective, each) for each in scale.scales
    ]
    if not found:
        return ""
    least, name, ends = min(found, key=lambda each: each[:2])
    value = score.objectives.get(name)
    is_value = "has no value" if value is None else f"is {value:.6g}"
    return f"{name} {is_value} and scores {least:.2f}; the best built-in policy has {ends.best:.6g}"


def _bytes(memory: str | int) -> int:
    try:
        return memory if isinstance(memory, int) else round_up("memory", parse_quantity(memory))
    except InputError as error:
        raise OptionError(f"memory: {error.message}") from error
