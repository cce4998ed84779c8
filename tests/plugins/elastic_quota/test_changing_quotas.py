"""Elastic quotas that change are refused, and everything else that changes is not theirs to follow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.base.errors import InputError
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.changes.edits import Edit, Instant
from harness.cluster.kinds.elastic import ElasticQuota
from harness.cluster.model import frozen
from harness.plugins import load
from harness.testing import nodes


def test_a_change_of_an_elastic_quota_is_refused_with_its_name_and_time() -> None:
    """Before anything is replayed."""
    quota = ElasticQuota("a", min=frozen({"cpu": 1000}), max=frozen({"cpu": 2000}))
    less = replace(quota, max=frozen({"cpu": 1000}))
    where = replace(
        nodes(n1={"cpu": 4000}),
        elastic_quotas=frozen({"a": quota}),
        changes=(Instant(90 * SECOND, (Edit("ElasticQuota", "a", quota, less),)),),
    )
    spec = load().policy("elasticquota")
    with pytest.raises(InputError, match="ElasticQuota a changes 1m30s after the origin"):
        spec.factory(where, None, resolve(spec.options, {}, owner=""))  # type: ignore[arg-type]
