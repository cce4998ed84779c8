"""Tries the cases of a range of seeds, or shows one; see the package."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from fuzz.calls import inside, of_process, outside, watched
from fuzz.cases import case_of
from fuzz.judge import verdict

_TESTS = Path(__file__).parent.parent


class Worker:
    """A process that runs cases, and another in its place when one had to be stopped."""

    def __init__(self, *, thorough: bool) -> None:
        self._thorough = thorough
        self._start()

    def _start(self) -> None:
        self._answers: SimpleQueue[str] = SimpleQueue()
        path = os.pathsep.join([str(_TESTS), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        environment = {**os.environ, "POLARS_MAX_THREADS": "1", "PYTHONPATH": path}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        )
        self._listener = Thread(target=self._listen, args=(self._process, self._answers), daemon=True)
        self._listener.start()

    @staticmethod
    def _listen(process: subprocess.Popen[str], answers: SimpleQueue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            answers.put(line)

    def answer(self, seed: int) -> dict[str, Any]:
        """The verdict on a case."""
        process, found = self._process, []
        assert process.stdin is not None
        process.stdin.write(json.dumps([seed, self._thorough]) + "\n")
        process.stdin.flush()

        def over(seconds: float) -> bool:
            try:
                found.append(self._answers.get(timeout=seconds))
            except Empty:
                return process.poll() is not None
            return True

        stopped = watched(process.pid, over, cpu=of_process(process.pid)[0])
        if found:
            answer: dict[str, Any] = json.loads(found[0])
            return answer
        code = self.close()
        self._start()
        why = stopped or f"the process died with {code}"
        return {"seed": seed, "kind": "stopped", "cpu": 0.0, "codes": [None], "wrong": [why]}

    def close(self) -> int:
        """End the process; answers how it ended."""
        self._process.kill()
        code = self._process.wait()
        self._listener.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        return code


def real(seed: int) -> dict[str, Any]:
    """The verdict on a case whose commands are processes of their own."""
    case = case_of(seed)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name, outside(Path(name)) as call:
        found = verdict(case, case.brief(), Path(name), call)
    return {"seed": seed, "kind": case.kind, "cpu": 0.0, **found._asdict()}


def tried(
    seeds: range, *, workers: int = 1, thorough: bool = False, processes: bool = False
) -> Iterator[dict[str, Any]]:
    """The verdicts on the cases of some seeds, in no order.

    Args:
        seeds: which.
        workers: how many at once.
        thorough: whether all commands of a case are run, or one.
        processes: whether every command is a process of its own.
    """
    left, answers = iter(seeds), SimpleQueue[Any]()
    lock = Lock()

    def following() -> int | None:
        with lock:
            return next(left, None)

    def work() -> None:
        worker = None if processes else Worker(thorough=thorough)
        try:
            while (seed := following()) is not None:
                answers.put(real(seed) if worker is None else worker.answer(seed))
        finally:
            answers.put(None)
            if worker is not None:
                worker.close()

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work) for _ in range(workers)]
        ended = 0
        while ended < workers:
            answer = answers.get()
            if answer is None:
                ended += 1
            else:
                yield answer
    for future in futures:
        future.result()  # what went wrong with the work itself


def _show(seed: int) -> int:
    """One case with everything: what it is, what its commands say, and what is wrong."""
    case = case_of(seed)
    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{seed}-"))
    print(f"seed {seed}: {case.kind}, in {folder}")
    with inside(folder) as call:

        def told(words: list[str]) -> Any:
            ended = call(words)
            print(f"\n$ harness {subprocess.list2cmdline(words)}")
            print(f"{ended.out[-3000:]}{ended.err[-3000:]}({ended.code})")
            return ended

        found = verdict(case, case.thorough(), folder, told)
    print("\n" + "\n".join(found.wrong or ["all is well"]))
    return bool(found.wrong)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("end", type=int, nargs="?", help="the seed to stop before")
    parser.add_argument("--show", action="store_true", help="all of one case")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--thorough", action="store_true", help="all commands of every case, not one")
    parser.add_argument("--real", action="store_true", help="every command as a process of its own")
    parser.add_argument("--log", type=Path, help="verdicts, one a line; seeds in it are not tried again")
    given = parser.parse_args()
    if given.show:
        return _show(given.first)
    seeds = range(given.first, given.end if given.end is not None else given.first + 1)
    done: set[int] = set()
    if given.log is not None and given.log.exists():
        done = {json.loads(line)["seed"] for line in given.log.read_text().splitlines()}
    counts: Counter[str] = Counter()
    wanted = [seed for seed in seeds if seed not in done]
    log = given.log.open("a") if given.log is not None else None
    for answer in tried(wanted, workers=given.workers, thorough=given.thorough, processes=given.real):  # type: ignore[arg-type]
        counts.update([answer["kind"], *(f"exit code {code}" for code in answer["codes"])])
        if log is not None:
            log.write(json.dumps(answer) + "\n")
            log.flush()
        if answer["wrong"]:
            counts["wrong"] += 1
            print(f"seed {answer['seed']} ({answer['kind']}):", *answer["wrong"], sep="\n  ", flush=True)
    print(
        ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "nothing was left to try"
    )
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
