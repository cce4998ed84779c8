"""Runs cases in this process: seeds come on stdin, verdicts go to stdout, both as JSON lines."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

from fuzz.calls import forget_peak, inside, keep_low
from fuzz.cases import case_of
from fuzz.judge import verdict


def main() -> None:
    """Answer every seed; whoever asks watches how long it takes."""
    keep_low()
    answers, sys.stdout = sys.stdout, sys.stderr
    seeds, sys.stdin = sys.stdin, TextIOWrapper(BytesIO())  # a case may read it

    def answer(verdict: dict[str, Any]) -> None:
        answers.write(json.dumps(verdict) + "\n")
        answers.flush()

    for line in seeds:
        seed, thorough = json.loads(line)
        forget_peak()
        before = time.process_time()
        try:
            case = case_of(seed)
        except BaseException as error:
            answer(
                {
                    "seed": seed,
                    "kind": "none",
                    "cpu": 0.0,
                    "codes": [],
                    "wrong": [f"no case: {type(error)}: {error}"],
                }
            )
            continue
        with tempfile.TemporaryDirectory(prefix="fuzz-") as name, inside(Path(name)) as call:
            found = verdict(case, case.thorough() if thorough else case.brief(), Path(name), call)
        spent = round(time.process_time() - before, 3)
        answer({"seed": seed, "kind": case.kind, "cpu": spent, **found._asdict()})


if __name__ == "__main__":
    main()
