"""The scales that `harness trace calibrate` names give the load that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_clusters import queues

from harness.cluster.load import cluster_from
from harness.cluster.scale import scaled_cluster
from harness.errors import InputError
from harness.plugins import load
from harness.trace.jobs import Jobs
from harness.trace.level import SUBMIT, level_of
from harness.trace.target import aim, offers_of
from harness.trace.trace import open_trace

PLUGINS = load(only=["readers"])


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.fractions(Fraction(1, 10), 3, max_denominator=20), st.lists(st.integers(0, 10**4), min_size=2))
def test_either_scale_gives_the_load(
    write_trace: Callable[..., Path], load: Fraction, times: list[int]
) -> None:
    """Arrivals that are so much denser, or a cluster of that size, reach the target.

    A cluster that is scaled to nothing has no load.
    """
    if max(times) - min(times) < 1000:
        return
    trace = open_trace(write_trace(*({"submit_time": time} for time in times)), PLUGINS)
    cluster = cluster_from(yaml.safe_load_all(queues({"default": {"cpu": "7000"}})), "test")
    target = aim(trace, cluster, load)
    assert target.arrivals_load == pytest.approx(load, rel=1e-3)
    scaled = scaled_cluster(cluster, target.scale_cluster)
    offered = offers_of(trace, scaled).get("cpu")
    assert (offered.load if offered else 0) == target.cluster_load
    dense = Jobs(trace, cluster, scale_arrivals=target.scale_arrivals).frame.rename({"submit": SUBMIT})
    assert level_of(dense, "cpu").mean / 7_000_000 == pytest.approx(float(load), rel=1e-2)


def test_the_scarcest_resource_is_the_target(write_trace: Callable[..., Path]) -> None:
    """A load is that of the resource of which least is left."""
    rows = [{"submit_time": time, "request.gpu": 1} for time in (0, 100)]
    trace = open_trace(write_trace(*rows), PLUGINS)
    cluster = cluster_from(yaml.safe_load_all(queues({"default": {"cpu": "100", "gpu": "1"}})), "test")
    target = aim(trace, cluster, Fraction(1))
    assert (target.resource, target.offers["gpu"].load) == ("gpu", Fraction(20, 100))
    assert target.scale_arrivals == 5


def test_a_cluster_without_the_resource_is_no_target(write_trace: Callable[..., Path]) -> None:
    """There is no load of what is not there."""
    trace = open_trace(write_trace({}), PLUGINS)
    cluster = cluster_from(yaml.safe_load_all(queues({"default": {"gpu": "1"}})), "c.yaml")
    with pytest.raises(InputError, match=r"c\.yaml has nothing that .* asks for"):
        aim(trace, cluster, Fraction(1))
