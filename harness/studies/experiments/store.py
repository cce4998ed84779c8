"""Stores experiments as files: the specification, a file for each finished item, and the table.

- `<root>/experiment.json`: the factors and inputs.
- `<root>/items.parquet`: one row for each item, with its number, its key and the values of its factors.
- `<root>/items/ab/ab12….parquet`: the metrics of an item, under its key.
- `<root>/failed/ab12….json`: the reason why an item failed.
- `<root>/experiment.parquet`: all results, with one row for each item and measured value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness.base.errors import RunError, why
from harness.base.files.whole import whole_file
from harness.base.tables import schemas
from harness.studies.experiments.evaluation import Item, Made, about
from harness.studies.experiments.specification import Factor, Spec, Value

SCHEMA = "2"
_AT_A_TIME = 500
_NUMBERS = (int, float)


class Folder:
    """The folder of one experiment.

    The folder `root` is created when the first file is written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    # --- the specification ------------------------------------------------------------------------------

    def describe(self, spec: Spec, items: Sequence[Item], made_from: Mapping[str, Any] | None = None) -> None:
        """Writes the specification and the items of the experiment.

        `made_from` is the origin of the experiment, in the form that `provenance` returns.

        Raises:
            RunError: a file cannot be written.
        """
        seeds = spec.seeds
        told = {
            "schema": SCHEMA,
            "experiment": spec.name,
            "items": len(items),
            "traces": {label: path.name for label, path in spec.traces.items()},
            "factors": [{"name": each.name, "values": list(each.values)} for each in spec.factors],
            "together": [[each.name for each in group] for group in spec.groups if len(group) > 1],
            "seeds": None if seeds is None else asdict(seeds),
            "keep": spec.keep,
            "made_from": made_from or {},
        }
        with _writing(self.root / "items.parquet") as file:
            _items_frame(spec.factors, items).write_parquet(file)
        with _writing(self.root / "experiment.json") as file:
            file.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8", newline="\n")

    def description(self) -> Mapping[str, Any]:
        """Reads what `describe` wrote.

        Raises:
            RunError: the folder is not an experiment.
        """
        path = self.root / "experiment.json"
        try:
            found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            schema = found["schema"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"{self.root} is not an experiment: {path.name}: {why(error, 'it is damaged')}",
                hint="harness sweep SPEC makes one",
            ) from error
        if schema != SCHEMA:
            raise RunError(
                f"{path} has the schema {schema!r}, but this version of harness reads {SCHEMA!r}",
                hint="sweep again",
            )
        return found

    def items(self) -> pl.DataFrame:
        """Returns a table with one row for each item.

        Raises:
            RunError: the table is missing or damaged.
        """
        path = self.root / "items.parquet"
        try:
            return pl.read_parquet(path, glob=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise RunError(
                f"{path} cannot be read: {why(error)}", hint="harness sweep SPEC writes it"
            ) from error

    # --- what was made ------------------------------------------------------------------------------------

    def file(self, key: str) -> Path:
        """Returns the path of an item's metrics."""
        return self.root / "items" / key[:2] / f"{key}.parquet"

    def missing(self, items: Iterable[Item]) -> list[Item]:
        """Returns the items that have no file of metrics."""
        there = {path.stem for path in (self.root / "items").glob("*/*.parquet")}
        return [item for item in items if item.key not in there]

    def keep(self, made: Made) -> None:
        """Stores the result of an item.

        Raises:
            RunError: a file cannot be written.
        """
        failed = self.root / "failed" / f"{made.item.key}.json"
        if made.table is None:
            with _writing(failed) as file:
                file.write_text(json.dumps({"error": made.error}) + "\n", encoding="utf-8", newline="\n")
            return
        with _writing(self.file(made.item.key)) as file:
            file.write_bytes(made.table)
        failed.unlink(missing_ok=True)

    def error(self, key: str) -> str | None:
        """Returns the reason why an item failed; None if the item did not fail or has not run yet."""
        try:
            found = json.loads((self.root / "failed" / f"{key}.json").read_text(encoding="utf-8"))
            return str(found["error"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    # --- the table ----------------------------------------------------------------------------------------

    def write_table(self) -> None:
        """Writes a table of all stored items. Equal items give equal bytes.

        Raises:
            RunError: an item is damaged, or the table cannot be written.
        """
        with _writing(self.root / "experiment.parquet") as file:
            writer: pq.ParquetWriter | None = None
            for part in self.parts():
                table = part.to_arrow()
                writer = writer or pq.ParquetWriter(file, table.schema, compression="zstd")
                writer.write_table(table)
            if writer is None:
                self._empty().write_parquet(file)
            else:
                writer.close()

    def parts(self) -> Iterator[pl.DataFrame]:
        """Yields the table in parts, with a few items at a time.

        Raises:
            RunError: an item is damaged.
        """
        there = {path.stem for path in (self.root / "items").glob("*/*.parquet")}
        items = self.items().filter(pl.col("key").is_in(list(there)))
        for some in items.iter_slices(_AT_A_TIME):
            found = [
                self._metrics(key).with_columns(pl.lit(number, dtype=pl.Int64).alias("item"))
                for number, key in some.select("item", "key").iter_rows()
            ]
            yield (
                pl.concat(found)
                .join(some.drop("key"), on="item", maintain_order="left")
                .select(
                    "item", *(name for name in some.columns if name not in ("item", "key")), *schemas.METRICS
                )
            )

    def table(self) -> pl.DataFrame:
        """Returns the whole table.

        Raises:
            RunError: an item is damaged.
        """
        found = list(self.parts())
        return pl.concat(found) if found else self._empty()

    def _empty(self) -> pl.DataFrame:
        items = self.items().drop("key").clear()
        return items.with_columns(
            pl.lit(None, dtype=dtype).alias(name) for name, dtype in schemas.METRICS.items()
        )

    def _metrics(self, key: str) -> pl.DataFrame:
        path = self.file(key)
        try:
            found = pl.read_parquet(path, glob=False)
            if "at_least" not in found.columns:  # Tables from before schema 4 lack this column.
                found = found.with_columns(at_least=pl.lit(None, pl.Boolean))
            return found.select(*schemas.METRICS)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise _damaged(path, error) from error

    def about(self, key: str) -> Mapping[str, Any]:
        """Reads the description of an item, with `key`, `run`, `jobs`, `stopped` and `unmeasured`.

        Raises:
            RunError: the file is missing or damaged.
        """
        path = self.file(key)
        try:
            return about(path)
        except (OSError, ValueError) as error:
            raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> RunError:
    return RunError(f"{path} is damaged: {error}", hint="remove the file; harness sweep SPEC writes it again")


def _items_frame(factors: Sequence[Factor], items: Sequence[Item]) -> pl.DataFrame:
    columns = [pl.Series("item", [item.number for item in items], dtype=pl.Int64)]
    columns.append(pl.Series("key", [item.key for item in items], dtype=pl.String))
    columns += [_column(factor, [item.point[factor.name] for item in items]) for factor in factors]
    return pl.DataFrame(columns)


def _column(factor: Factor, values: Sequence[Value]) -> pl.Series:
    """Returns the values of a factor as numbers, or as texts if any value of the factor is not a number."""
    given = [each for each in factor.values if each is not None]
    if any(isinstance(each, bool) or not isinstance(each, _NUMBERS) for each in given):
        texts = [None if each is None else value_text(each) for each in values]
        return pl.Series(factor.name, texts, dtype=pl.String)
    whole = all(isinstance(each, int) for each in given)
    return pl.Series(factor.name, values, dtype=pl.Int64 if whole else pl.Float64, strict=False)


def value_text(value: Value) -> str:
    """Returns a value as a user would write it in a specification."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


@contextmanager
def _writing(path: Path) -> Iterator[Path]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            yield file
    except (OSError, pl.exceptions.PolarsError, pa.ArrowException) as error:
        raise RunError(
            f"{path} cannot be written: {why(error)}", hint="choose another folder with -o"
        ) from error
