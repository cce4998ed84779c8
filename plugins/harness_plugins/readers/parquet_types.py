"""Lists the types of Parquet columns that polars supports.

Other types make polars panic, so columns of these types are never passed to polars.
"""

from __future__ import annotations

from functools import lru_cache
from zoneinfo import ZoneInfo

import polars as pl
import pyarrow as pa

_PLAIN = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_duration,
    pa.types.is_null,
    pa.types.is_decimal128,
)


def held_as(kind: pa.DataType) -> pa.DataType | None:
    """Returns the type in which polars stores values of a type, or None if polars cannot store them.

    If polars does not know the time zone of a type, its times are stored in UTC, where they are the same
    points in time.
    """
    types = pa.types
    if types.is_dictionary(kind):
        return held_as(kind.value_type)
    if types.is_timestamp(kind):
        return kind if kind.tz is None or _knows(kind.tz) else pa.timestamp(kind.unit, "UTC")
    if isinstance(kind, pa.BaseExtensionType):
        return held_as(kind.storage_type)
    if types.is_map(kind):
        key, item = held_as(kind.key_type), held_as(kind.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if types.is_struct(kind):
        return _struct(kind)
    if types.is_fixed_size_list(kind):
        inner = held_as(kind.value_type)
        return pa.list_(inner, kind.list_size) if inner is not None and kind.list_size else None
    if types.is_list(kind) or types.is_large_list(kind):
        inner = held_as(kind.value_type)
        make = pa.list_ if types.is_list(kind) else pa.large_list
        return None if inner is None else make(inner)
    return kind if any(is_plain(kind) for is_plain in _PLAIN) else None


def _struct(kind: pa.StructType) -> pa.DataType | None:
    fields = []
    for field in kind:
        inner = held_as(field.type)
        if inner is None:
            return None
        fields.append(pa.field(field.name, inner, field.nullable))
    return pa.struct(fields)


@lru_cache(maxsize=100)
def _knows(zone: str) -> bool:
    """Returns True if both polars and Python know a time zone by its name."""
    try:
        ZoneInfo(zone)
        pl.Series([0]).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    except (KeyError, ValueError, OSError, pl.exceptions.PolarsError):
        return False
    return True
