"""Says anew whose each job is, for traces whose queue is not the tenant, or that have too many of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

import polars as pl

from harness.errors import OptionError
from harness.options import did_you_mean
from harness.trace.schema import has_names
from harness.trace.trace import Trace

OTHER = "other"
"""The queue of all that `top` does not keep."""

UNKNOWN = "unknown"
"""The queue of jobs that a column says nothing about."""

_FORM = "write column:NAME, top:N, hash:N or names, also several: column:user,top:20"
_NUMBER = re.compile("0*[1-9][0-9]{0,8}", re.ASCII)
_LONGEST_NAME = 63  # of a label's value, which is how Kubernetes writes down the queue of a job

_Queues: TypeAlias = Callable[[pl.DataFrame, str], pl.Series]


@dataclass(frozen=True, slots=True)
class Tenants:
    """New queues, one step after the other.

    `column:NAME` takes another column as the queue, `top:N` keeps the queues with most jobs and puts the
    others into `other`, `hash:N` spreads queues over N by their names, and `names` makes them names that
    Kubernetes accepts.
    """

    steps: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> Tenants:
        """`KIND:ARGUMENT`, several separated by commas.

        Raises:
            OptionError: a step that there is not, or a number that is none.
        """
        steps = []
        for part in text.split(","):
            kind, _, argument = part.strip().partition(":")
            if kind not in _STEPS or (kind == "names") == bool(argument):
                raise OptionError(f"--tenants {text!r}: {part!r} is not understood", hint=_FORM)
            if kind in ("top", "hash") and not _NUMBER.fullmatch(argument):
                raise OptionError(
                    f"--tenants {text!r}: {argument!r} is not a number from 1 to 999,999,999", hint=_FORM
                )
            steps.append((kind, argument))
        return cls(tuple(steps))

    def __str__(self) -> str:
        return ",".join(f"{kind}:{argument}" if argument else kind for kind, argument in self.steps)

    def changed(self, trace: Trace) -> tuple[pl.DataFrame, str]:
        """The rows with their new queues.

        Raises:
            OptionError: there is no such column, or two queues would become one.
        """
        frame = trace.frame
        before = frame["queue"].n_unique()
        for kind, argument in self.steps:
            queue = _STEPS[kind](frame, argument).cast(frame["queue"].dtype)
            frame = frame.with_columns(queue.alias("queue"))
        return frame, f"{before:,} queues become {frame['queue'].n_unique():,}"


def kubernetes_name(name: str) -> str:
    """A name that Kubernetes accepts for its objects and labels: RFC 1123, at most 63 signs."""
    made = re.sub("[^a-z0-9-]+", "-", name.lower()).strip("-")[:_LONGEST_NAME].strip("-")
    return made or "queue"


def _column(frame: pl.DataFrame, name: str) -> pl.Series:
    if name not in frame.columns:
        raise OptionError(
            f"--tenants column:{name}: the trace has no such column", hint=did_you_mean(name, frame.columns)
        )
    if not has_names(frame[name].dtype):
        raise OptionError(f"--tenants column:{name}: {frame[name].dtype} is no name of a tenant")
    text = frame[name].cast(pl.String)
    return text.set(text == "", None).fill_null(UNKNOWN)


def _top(frame: pl.DataFrame, count: str) -> pl.Series:
    sizes = frame.group_by("queue").len().sort(["len", "queue"], descending=[True, False])
    kept = sizes["queue"].head(int(count))
    if len(kept) < sizes.height and OTHER in kept:
        raise OptionError(f"--tenants top:{count}: one of the largest queues is called {OTHER!r} already")
    return frame.select(
        pl.when(pl.col("queue").is_in(kept.implode())).then("queue").otherwise(pl.lit(OTHER))
    ).to_series()


def _hash(frame: pl.DataFrame, count: str) -> pl.Series:
    parts, width = int(count), len(str(int(count) - 1))

    def part(name: str) -> str:
        number = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") % parts
        return f"hash-{number:0{width}}"

    return _renamed(frame["queue"], part)


def _names(frame: pl.DataFrame, _: str) -> pl.Series:
    made = {name: kubernetes_name(name) for name in frame["queue"].unique().sort()}
    owners: dict[str, str] = {}
    for name, new in made.items():
        if owners.setdefault(new, name) != name:
            raise OptionError(f"--tenants names: {owners[new]!r} and {name!r} would both be called {new!r}")
    return _renamed(frame["queue"], made.__getitem__)


def _renamed(queues: pl.Series, rename: Callable[[str], str]) -> pl.Series:
    """Each distinct name is made anew once."""
    names = queues.unique().sort().to_list()
    return queues.replace_strict(names, [rename(name) for name in names], return_dtype=pl.String)


_STEPS: dict[str, _Queues] = {"column": _column, "top": _top, "hash": _hash, "names": _names}
