"""Provides access to the items (replays) and the table of a running or finished experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from harness.studies.experiments.store import Folder

DONE, FAILED, MISSING = "done", "failed", "missing"


class Experiment:
    """A stored experiment."""

    def __init__(self, root: Path, description: Mapping[str, Any]) -> None:
        self.root, self.description = root, description
        self._folder = Folder(root)

    @classmethod
    def open(cls, root: str | Path) -> Experiment:
        """Opens an experiment from its folder.

        Raises:
            RunError: the folder does not contain an experiment.
        """
        return cls(Path(root), Folder(Path(root)).description())

    def __repr__(self) -> str:
        count = self.items["state"].value_counts()
        told = ", ".join(f"{number:,} {state}" for state, number in sorted(count.iter_rows()))
        return f"<Experiment {self.name}: {told}>"

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return str(self.description["experiment"])

    @property
    def factors(self) -> Mapping[str, Sequence[Any]]:
        """The values of each factor."""
        return {each["name"]: each["values"] for each in self.description["factors"]}

    @cached_property
    def items(self) -> pl.DataFrame:
        """A table with the number, the key, the factors' values, the `state` and the `error` of each item."""
        found = self._folder.items()
        there = {path.stem for path in (self.root / "items").glob("*/*.parquet")}
        states, errors = [], []
        for key in found["key"]:
            error = None if key in there else self._folder.error(key)
            states.append(DONE if key in there else MISSING if error is None else FAILED)
            errors.append(error or "")
        return found.with_columns(
            pl.Series("state", states, dtype=pl.String), pl.Series("error", errors, dtype=pl.String)
        )

    def about(self, key: str) -> Mapping[str, Any]:
        """Reads the description of an item, with `key`, `run`, `jobs`, `stopped` and `unmeasured`.

        Raises:
            RunError: the file is missing or damaged.
        """
        return self._folder.about(key)

    @cached_property
    def stopped(self) -> Sequence[int]:
        """The numbers of the items that were stopped because they made no progress.

        The figures of such items do not cover all jobs.

        Raises:
            RunError: an item is damaged.
        """
        done = self.items.filter(state=DONE).select("item", "key")
        return [item for item, key in done.iter_rows() if self.about(key)["stopped"]]

    def to_polars(self) -> pl.DataFrame:
        """Returns a row per item, metric, scope and resource, with a column for each factor.

        Raises:
            RunError: an item is damaged.
        """
        return self._table

    @cached_property
    def _table(self) -> pl.DataFrame:
        return self._folder.table()
