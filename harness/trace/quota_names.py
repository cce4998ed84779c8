"""Finds the elastic quota that the labels of pods name, for each row."""

from __future__ import annotations

import polars as pl

from harness.cluster.kinds.elastic import QUOTA_NAME_LABEL, leaves_of
from harness.cluster.model import Cluster
from harness.trace.schema import entries

QUOTA_NAME = "harness.quota_name"
"""The column of jobs with the quota that the labels of their first pod set name.

The column is absent if no label names a quota. Its name can't clash, because no column of a trace begins
with `harness.`.
"""

_SLICE = 1 << 16  # the number of rows whose labels are converted to Python together


def quota_names(rows: pl.DataFrame, cluster: Cluster) -> pl.Series | None:
    """Returns the elastic quota that the labels of each row name.

    Rows whose labels name no quota get "". If no row names a quota, the result is None.

    A label has an effect only if its quota exists and has no quotas below it.
    """
    leaves = leaves_of(cluster.elastic_quotas)
    if not leaves or "labels" not in rows.columns:
        return None
    found = pl.concat(_named(part["labels"]) for part in rows.select("labels").iter_slices(_SLICE))
    named = found.is_in(list(leaves)).fill_null(value=False)
    if not named.any():
        return None
    return found.set(~named, "").cast(pl.Categorical).alias(QUOTA_NAME)


def _named(labels: pl.Series) -> pl.Series:
    names = [dict(entries(value)).get(QUOTA_NAME_LABEL) for value in labels.to_list()]
    return pl.Series(QUOTA_NAME, names, dtype=pl.String)
