"""Carries out experiments. Finished items are kept, and a failed item does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from harness.base.errors import OptionError
from harness.runs.executors import Here, executor_for
from harness.studies.experiments.evaluation import Item, Made, Replays
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.preparation import items_of
from harness.studies.experiments.provenance import provenance
from harness.studies.experiments.requests import Bench
from harness.studies.experiments.store import Folder


@dataclass(slots=True)
class State:
    """The progress of an experiment. An item is one replay of the experiment.

    Attributes:
        stored: how many items had been stored before.
        made: how many items have been made.
        failed: how many items have failed.
        workers: how many items are made at the same time.
        seconds: the CPU time of the items that have been made or have failed.
    """

    items: int
    stored: int
    workers: int
    made: int = 0
    failed: int = 0
    seconds: float = 0.0

    @property
    def left(self) -> int:
        """The number of items that remain to be made."""
        return self.items - self.stored - self.made - self.failed


@dataclass(frozen=True)
class Sweep:
    """An experiment that can be carried out.

    The experiment's own folder is stored in the folder `output`.

    Attributes:
        items: all items of the experiment.
    """

    bench: Bench
    output: Path = Path("results")
    items: Sequence[Item] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", items_of(self.bench))

    @property
    def root(self) -> Path:
        """The path of the experiment's folder."""
        return self.output / self.bench.spec.name

    @property
    def folder(self) -> Folder:
        """The files of the experiment."""
        return Folder(self.root)

    def run(
        self,
        *,
        workers: int | None = None,
        executor: Executor | None = None,
        watch: Callable[[State, Made | None], None] | None = None,
    ) -> Experiment:
        """Makes the missing items, and then the table of all items.

        Args:
            workers: the number of processes on this machine. By default, it depends on the available cores
                and memory, and does not exceed the number of items. With 1, this process makes the items.
            executor: an executor that makes the items instead of processes on this machine.
            watch: a function that is called at the beginning, and after each item, even if the item failed.

        Raises:
            OptionError: both `workers` and `executor` are given.
            RunError: a file cannot be written.
            ReplayError: the executor has shut down.
        """
        folder = self.folder
        folder.describe(self.bench.spec, self.items, provenance(self.bench, self.items))
        missing = folder.missing(self.items)
        replays = self._replays
        with executor_for(
            replays, len(missing), memory=replays.memory, workers=workers, executor=executor
        ) as (pool, at_once):
            state = State(len(self.items), len(self.items) - len(missing), at_once)
            if watch is not None:
                watch(state, None)
            with closing(pool.map(missing)) as news:
                for made in news:
                    folder.keep(made)
                    state.seconds += made.seconds
                    state.failed += made.table is None
                    state.made += made.table is not None
                    if watch is not None:
                        watch(state, made)
        folder.write_table()
        return Experiment.open(self.root)

    @property
    def _replays(self) -> Replays:
        return Replays(self.bench.inputs, self.root / "runs")

    def make(self, number: int) -> Made:
        """Makes one item in this process, unless it is already stored.

        Raises:
            OptionError: there is no such item.
            RunError: a file cannot be written.
        """
        if not 0 <= number < len(self.items):
            raise OptionError(
                f"there is no item {number:,}: items are numbered 0 to {len(self.items) - 1:,}",
                hint="harness sweep items SPEC lists them",
            )
        item = self.items[number]
        if not self.folder.missing([item]):
            return Made(item, b"", "", 0.0)
        (made,) = Here(self._replays).map([item])
        self.folder.keep(made)
        return made
