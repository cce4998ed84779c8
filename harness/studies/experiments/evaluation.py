"""Makes the items of an experiment by replaying and measuring them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from harness.base.errors import INTERRUPTS, HarnessError, text_of
from harness.runs.executors import Report, why_failed
from harness.runs.identity import Looked, looked_at_once
from harness.runs.run import Run
from harness.runs.worker_count import memory_for
from harness.studies.experiments.requests import Bench, Inputs
from harness.studies.experiments.specification import Point

ABOUT = b"harness.item"
"""The metadata key of an item's description in the item's file."""

_LEVEL = 3


class Item(NamedTuple):
    """One replay of an experiment.

    Attributes:
        key: the name of the stored results, which depends on the inputs, the settings and the code.
    """

    number: int
    key: str
    point: Point


class Made(NamedTuple):
    """The result of an item.

    Attributes:
        table: the metrics as a Parquet file; None if the item failed.
        error: the reason why the item failed, and what to do about it.
        seconds: the CPU time in seconds.
    """

    item: Item
    table: bytes | None
    error: str
    seconds: float


@dataclass(frozen=True)
class Replays:
    """Replays the items of an experiment. For the meaning of the methods, see `Work`.

    Attributes:
        output: the folder for whole runs, if whole runs are kept.
    """

    inputs: Inputs
    output: Path

    @property
    def memory(self) -> int:
        """The approximate number of bytes that a process needs for a replay."""
        return max(memory_for(trace) for trace in self.inputs.traces.values())

    def begun(self, _: Report | None = None) -> Callable[[Item], Made]:
        """Returns a function that makes items in this process."""
        return Maker(self.inputs, self.output).make

    def failed(self, item: Item, error: BaseException) -> Made:
        """Returns the result of an item that no process could make."""
        return Made(item, None, why_failed(error), 0.0)


class Maker:
    """Makes items of one experiment.

    Args:
        output: the folder for whole runs, if whole runs are kept.
    """

    def __init__(self, inputs: Inputs, output: Path) -> None:
        self._bench, self._output = Bench(inputs), output
        self._looked: Looked = {}

    def make(self, item: Item) -> Made:
        """Replays an item and measures it. If the replay fails, the result contains the reason."""
        from time import process_time

        began = process_time()
        try:
            with looked_at_once(self._looked):
                request = self._bench.request(item.point, output=self._output)
                plan = self._bench.plan(item.point, request)
                run = request.run(plugins=self._bench.plugins, plan=plan)
                table = _table(run, item)
        except HarnessError as error:
            told = f"{error.message}\nHint: {error.hint}" if error.hint else error.message
            return Made(item, None, told, process_time() - began)
        except MemoryError:
            return Made(item, None, "there is not enough memory", process_time() - began)
        except INTERRUPTS:
            raise
        except BaseException as error:  # A defect in one item must not stop the other items.
            return Made(
                item, None, f"unexpected {type(error).__name__}: {text_of(error)}", process_time() - began
            )
        return Made(item, table, "", process_time() - began)


def _table(run: Run, item: Item) -> bytes:
    about: dict[str, Any] = {
        "key": item.key,
        "run": run.info["run"],
        "jobs": run.info["outcome"]["jobs"],
        "stopped": "" if run.stopped is None else run.stopped.told(),
        "unmeasured": dict(run.unmeasured),
    }
    return written(run.metrics.to_arrow(), about)


def written(metrics: pa.Table, about: Mapping[str, Any]) -> bytes:
    """Returns the content of an item's file, which has the metrics as data and a description as metadata."""
    buffer = BytesIO()
    table = metrics.replace_schema_metadata({ABOUT: json.dumps(about).encode()})
    pq.write_table(table, buffer, compression="zstd", compression_level=_LEVEL)
    return buffer.getvalue()


def about(file: Path) -> Mapping[str, Any]:
    """Reads the description of an item from its file.

    Raises:
        OSError, ValueError: the file was not written for an item.
    """
    try:
        found: Mapping[str, Any] = json.loads(pq.read_metadata(file).metadata[ABOUT])
    except (KeyError, TypeError, pa.ArrowException) as error:
        raise ValueError(f"{file} is not an item of an experiment") from error
    return found
