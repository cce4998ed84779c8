"""Computes random numbers from a key and a counter. They are the same in every version and on every machine.

The generator is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
Its n-th number needs no state except n. Arrow's integer kernels compute whole columns. According to their
documentation, the functions `multiply` and `add` wrap around.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import polars as pl
import pyarrow as pa

_GAMMA = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def key_of(*parts: object) -> int:
    """Returns a key for one purpose, such as `key_of(seed, tenant, "duration")`.

    Different parts result in different keys.
    """
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def splitmix64(key: int, numbers: pl.Series) -> pa.Array:
    """Returns outputs of SplitMix64 with the state `key`, as uint64.

    `numbers` are their indices, counted from 0.
    """
    pc = _kernels()
    counter = numbers.cast(pl.UInt64).to_arrow()
    mixed = pc.add(pc.multiply(pc.add(counter, _word(1)), _word(_GAMMA)), _word(key))
    mixed = pc.multiply(_shifted(mixed, 30), _word(_FIRST))
    mixed = pc.multiply(_shifted(mixed, 27), _word(_SECOND))
    return _shifted(mixed, 31)


def uniforms(key: int, numbers: pl.Series) -> pl.Series:
    """Returns a uniform number in the open interval (0, 1) for each of `numbers`."""
    bits = _kernels().shift_right(splitmix64(key, numbers), _word(12))
    return (pl.Series(values=pl.from_arrow(bits), dtype=pl.UInt64).cast(pl.Float64) + 0.5) * 2.0**-52


def _shifted(values: pa.Array, by: int) -> pa.Array:
    pc = _kernels()
    return pc.bit_wise_xor(values, pc.shift_right(values, _word(by)))


def _kernels() -> Any:
    """Returns Arrow's functions, which are imported late because that takes longer than a short replay."""
    import pyarrow.compute

    return pyarrow.compute


def _word(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint64())


def uniform(*parts: object) -> float:
    """Returns a uniform number in [0, 1) for one purpose, such as `uniform(seed, future, job)`."""
    return (key_of(*parts) >> 11) * 2.0**-53
