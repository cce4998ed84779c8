"""Sets priorities that a trace only implies, or that are not in the trace at all."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import polars as pl

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.base.units import exact_number
from harness.base.values import Value, fixed
from harness.trace.sample import draws
from harness.trace.schema import has_names
from harness.trace.trace import Trace

_OTHERS = "*"
_FORM = "write COLUMN=VALUE:PRIORITY,VALUE:PRIORITY, such as queue=prod:100,*:0"
_SHARE_FORM = "write SHARE:PRIORITY,...[@SEED], such as 0.2:1000@7"
_INT32 = 2**31
_MOST_DIGITS = 40


@fixed()
class PriorityFrom(Value):
    """Priorities that depend on the value of a column.

    Attributes:
        column: any column of the trace, even one outside the schema.
        priorities: the priority for each value, as text. The value `*` means all other values. Without `*`,
            jobs with other values keep the trace's priority.
    """

    column: str
    priorities: Mapping[str, int]

    @classmethod
    def parse(cls, text: str) -> PriorityFrom:
        """Parse `COLUMN=VALUE:PRIORITY,...`.

        Raises:
            OptionError: the text has another form, repeats a value, or has a priority that does not fit
                into 32 bits.
        """
        column, equals, rest = text.partition("=")
        priorities: dict[str, int] = {}
        for part in rest.split(","):
            value, colon, number = part.rpartition(":")
            if not (column and equals and colon):
                raise OptionError(f"--priority-from {text!r} is not understood", hint=_FORM)
            if value in priorities:
                raise OptionError(f"--priority-from {text!r}: {value!r} is given twice")
            priorities[value] = _priority(number, f"--priority-from {text!r}", _FORM)
        return cls(column, priorities)

    def __str__(self) -> str:
        return f"{self.column}=" + ",".join(f"{value}:{rank}" for value, rank in self.priorities.items())

    def changed(self, trace: Trace) -> tuple[pl.DataFrame, str]:
        """Returns the rows with these priorities.

        Raises:
            OptionError: the column does not exist, or one of the values occurs in no job.
        """
        frame = trace.frame
        if self.column not in frame.columns:
            raise OptionError(
                f"--priority-from {self}: {trace.path} has no column {self.column!r}",
                hint=did_you_mean(self.column, frame.columns),
            )
        if not has_names(frame[self.column].dtype):
            raise OptionError(
                f"--priority-from {self}: {self.column} is {frame[self.column].dtype}; only text and numbers "
                "can be selected by their values"
            )
        key = pl.col(self.column).cast(pl.String)
        present = frame.select(key.unique()).to_series().drop_nulls()
        absent = [value for value in self.priorities if value != _OTHERS and value not in present]
        if absent:
            raise OptionError(
                f"--priority-from {self}: {self.column} never has the value {absent[0]!r}",
                hint=did_you_mean(absent[0], present),
            )
        listed = {value: rank for value, rank in self.priorities.items() if value != _OTHERS}
        others = pl.lit(self.priorities[_OTHERS], pl.Int32) if _OTHERS in self.priorities else _stated(frame)
        found = key.replace_strict(list(listed), list(listed.values()), default=None, return_dtype=pl.Int32)
        changed = frame.with_columns(pl.coalesce(found, others).alias("priority"))
        return changed, f"priorities by {self.column}"


@fixed()
class PriorityShare(Value):
    """Priorities for a share of each queue's jobs, for traces without priorities.

    Attributes:
        shares: pairs of a share and a priority. Each pair chooses among the jobs that earlier pairs did not
            choose. All other jobs keep the trace's priority.
        seed: the seed of the choice. Equal seeds choose equal jobs, and a larger first share includes all
            jobs of a smaller first share.
    """

    shares: tuple[tuple[Fraction, int], ...]
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> PriorityShare:
        """Parse `SHARE:PRIORITY,...[@SEED]`, such as `0.2:1000@7`.

        Raises:
            OptionError: the text has another form, a share is not above 0, their sum exceeds 1, or a
                priority does not fit into 32 bits.
        """
        option = f"--priority-share {text!r}"
        listed, _, seed = text.partition("@")
        shares = []
        for part in listed.split(","):
            share, _, number = part.partition(":")
            try:
                shares.append((exact_number(share), _priority(number, option, _SHARE_FORM)))
            except ValueError:
                raise OptionError(f"{option}: {share!r} is not a share", hint=_SHARE_FORM) from None
        if any(share <= 0 for share, _ in shares) or sum(share for share, _ in shares) > 1:
            raise OptionError(f"{option}: shares must be above 0, and their sum at most 1", hint=_SHARE_FORM)
        if max(sum(share for share, _ in shares[: 1 + at]).denominator for at in range(len(shares))) > 10**6:
            raise OptionError(f"{option}: shares have at most six decimals", hint=_SHARE_FORM)
        if seed and not (seed.isascii() and seed.isdigit() and len(seed) <= _MOST_DIGITS):
            raise OptionError(f"{option}: {seed!r} is not a whole number of 0 or more", hint=_SHARE_FORM)
        return cls(tuple(shares), int(seed or 0))

    def __str__(self) -> str:
        return ",".join(f"{_plain(share)}:{rank}" for share, rank in self.shares) + f"@{self.seed}"

    def changed(self, trace: Trace) -> tuple[pl.DataFrame, str]:
        """Returns the rows with these priorities. In each queue, jobs get them in a random order.

        Shares are rounded to whole jobs.
        """
        frame = trace.frame
        drawn = frame.select("job_id", "queue", draws(frame, self.seed))
        jobs = drawn.unique("job_id", keep="first", maintain_order=True)
        place = pl.col("draw").rank("ordinal").over("queue").cast(pl.Int64)
        chosen, before = pl.lit(None, pl.Int32), Fraction(0)
        for share, rank in self.shares:
            before += share
            last = _rounded(before, pl.len().over("queue").cast(pl.Int64))
            chosen = pl.coalesce(chosen, pl.when(place <= last).then(pl.lit(rank, pl.Int32)))
        ranks = jobs.select("job_id", chosen.alias("rank"))
        found = frame["job_id"].replace_strict(ranks["job_id"], ranks["rank"], return_dtype=pl.Int32)
        changed = frame.with_columns(pl.coalesce(found, _stated(frame)).alias("priority"))
        return changed, f"each share of a queue's jobs, chosen with seed {self.seed}, gets its priority"


def _rounded(share: Fraction, count: pl.Expr) -> pl.Expr:
    return (count * (2 * share.numerator) + share.denominator) // (2 * share.denominator)


def _plain(share: Fraction) -> str:
    text = str(float(share))
    return text if Fraction(text) == share else str(share)


def _priority(text: str, option: str, form: str) -> int:
    try:
        priority = int(text)
    except ValueError:
        raise OptionError(f"{option}: {text!r} is not a whole number", hint=form) from None
    if not -_INT32 <= priority < _INT32:
        raise OptionError(f"{option}: {text} does not fit 32 bits")
    return priority


def _stated(frame: pl.DataFrame) -> pl.Expr:
    return pl.col("priority") if "priority" in frame.columns else pl.lit(None, pl.Int32)
