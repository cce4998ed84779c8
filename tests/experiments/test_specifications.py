"""What a specification says, which items it makes, and what is refused before anything is replayed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from small_clusters import queues

from harness.base.errors import SpecError
from harness.plugins import load
from harness.studies.experiments.parsing import from_texts, load_spec, more_varied
from harness.studies.experiments.points import points
from harness.studies.experiments.preparation import items_of, prepared
from harness.studies.experiments.specification import Point, Spec


def always(name: str, point: object) -> bool:
    return True


def test_the_grid_is_all_combinations_and_the_last_factor_varies_fastest(spec: Callable[..., Spec]) -> None:
    """Two values of one factor and two of another are four points, in the order of the file."""
    found = points(spec(vary={"scale-arrivals": [1, 2], "on-preemption": ["restart", "resume"]}), always)
    settings = [(each["scale-arrivals"], each["on-preemption"]) for each in found]
    assert settings == [(1, "restart"), (1, "resume"), (2, "restart"), (2, "resume")]


def test_what_is_zipped_goes_together(spec: Callable[..., Spec]) -> None:
    """Factors of one group are set value by value, and make no combinations among themselves."""
    group = {"ClusterQueue/a.weight": [1, 2], "ClusterQueue/b.weight": [2, 1]}
    found = points(spec(zip=[group], vary={"scale-arrivals": [1, 2]}), always)
    assert len(found) == 4
    assert {(each["ClusterQueue/a.weight"], each["ClusterQueue/b.weight"]) for each in found} == {
        (1, 2),
        (2, 1),
    }


def test_what_is_excluded_is_left_out(spec: Callable[..., Spec]) -> None:
    """A rule leaves out the points that meet all of it."""
    vary = {"scale-arrivals": [1, 2, 3], "on-preemption": ["restart", "resume"]}
    found = points(spec(vary=vary, exclude=[{"scale-arrivals": [2, 3], "on-preemption": "resume"}]), always)
    settings = [(each["scale-arrivals"], each["on-preemption"]) for each in found]
    assert settings == [(1, "restart"), (1, "resume"), (2, "restart"), (3, "restart")]


def test_a_seeded_part_of_the_grid_is_drawn(spec: Callable[..., Spec]) -> None:
    """`200@7` is so many different points of the grid, the same each time, others by another seed."""
    vary = {"scale-arrivals": list(range(1, 21)), "grace-period": [f"{each}s" for each in range(20)]}
    some = points(spec(vary=vary, random="30@7"), always)
    assert len({tuple(each.values()) for each in some}) == 30
    assert some == points(spec(vary=vary, random="30@7"), always)
    assert some != points(spec(vary=vary, random="30@8"), always)
    assert len(points(spec(vary=vary, random="1000@7"), always)) == 400


def test_as_many_are_drawn_as_are_asked_for_where_several_mean_the_same(spec: Callable[..., Spec]) -> None:
    """An option of another plugin means nothing: its ten values are one point."""
    vary = {"on-preemption": ["restart", "resume"], "y.latency": list(range(10))}

    def applies(name: str, point: Point) -> bool:
        return name != "y.latency" or point["on-preemption"] == "resume"

    assert len(points(spec(vary=vary), applies)) == 11
    for seed in range(20):
        assert len(points(spec(vary=vary, random=f"9@{seed}"), applies)) == 9


def test_seeds_repeat_every_point(spec: Callable[..., Spec]) -> None:
    """Each point is there once for each seed, and points that are drawn keep all of their seeds."""
    found = points(spec(vary={"scale-arrivals": [1, 2]}, seeds={"count": 3, "first": 5}), always)
    assert [(each["scale-arrivals"], each["seed"]) for each in found] == [
        (arrivals, seed) for arrivals in (1, 2) for seed in (5, 6, 7)
    ]


def test_an_option_is_empty_for_plugins_that_do_not_have_it(spec: Callable[..., Spec]) -> None:
    """Points that differ in nothing else are one item."""
    asked = spec(plugins=["none", "fairsharing"], vary={"evictionLatency": ["0s", "10s"]})
    items = items_of(prepared(asked, load()))
    assert [(each.point["plugin"], each.point["evictionLatency"]) for each in items] == [
        ("none", None),
        ("fairsharing", "0s"),
        ("fairsharing", "10s"),
    ]
    assert len({each.key for each in items}) == 3


def test_a_knob_is_turned_to_a_value_or_to_so_many_times_what_there_is(spec: Callable[..., Spec]) -> None:
    """`x0.9` of four cores are 3.6, and `*` stands for all queues."""
    bench = prepared(spec(vary={"*.quota[cpu]": ["x0.9", "x2"], "ClusterQueue/a.weight": [1, 4]}), load())
    clusters = [bench.cluster(item.point) for item in items_of(bench)]
    found = [list(each.knobs("*.quota[cpu]").values()) for each in clusters[::2]]
    assert [[float(value) for value in each if value is not None] for each in found] == [[3.6, 1.8], [8, 4]]
    assert [each.knobs("ClusterQueue/a.weight")["ClusterQueue/a.weight"] for each in clusters] == [1, 4, 1, 4]


def test_weeks_are_drawn_alike_for_every_other_setting(spec: Callable[..., Spec]) -> None:
    """One seed has the same jobs whatever the policy is, and another seed others."""
    bench = prepared(spec(plugins=["none", "fairsharing"], seeds=2), load())
    frames = {
        (item.point["plugin"], item.point["seed"]): bench.trace(item.point).frame for item in items_of(bench)
    }
    assert frames["none", 1].equals(frames["fairsharing", 1])
    assert not frames["none", 1].equals(frames["none", 2])


def test_seeds_are_twins_where_the_specification_says_so(spec: Callable[..., Spec]) -> None:
    """The same jobs, each moved by up to so much, and the same for every other setting."""
    bench = prepared(
        spec(plugins=["none", "fairsharing"], seeds={"count": 2, "shake": "arrivals=1m"}), load()
    )
    one, two, other, _ = (bench.trace(item.point).frame for item in items_of(bench))
    assert one.equals(other)
    assert one.drop("submit_time").equals(two.drop("submit_time"))
    assert not one["submit_time"].equals(two["submit_time"])
    record = bench.inputs.traces["trace"].frame["submit_time"].dt.total_seconds()
    assert ((one["submit_time"].dt.total_seconds() - record).abs() <= 60).all()


def test_seeds_draw_priorities_where_the_specification_says_so(spec: Callable[..., Spec]) -> None:
    """The share of jobs with a priority is drawn anew, and nothing else changes."""
    bench = prepared(spec(seeds={"count": 2, "priority-share": "0.3:50"}), load())
    one, two = (bench.trace(item.point).frame for item in items_of(bench))
    assert one.drop("priority").equals(two.drop("priority"))
    assert not one["priority"].equals(two["priority"])
    assert 50 in one["priority"]


def test_every_fault_is_told_with_its_field_before_anything_is_replayed(world: Path) -> None:
    """One reading names them all."""
    path = world / "bad.yaml"
    path.write_text(
        "trace: trace.parquet\nplugin: [none]\nvary: {scale-arrivals: [], seed: [1]}\n"
        "exclude: [{scale-arrival: 2}]\nrandom: many\nseeds: {count: 0}\nkeep: some\n"
        "zip: [{a/b.weight: [1, 2], a/c.weight: [1]}]\n"
    )
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    told = "\n".join(map(str, caught.value.faults))
    for sentence in (
        "plugins: is missing",
        "plugin: is not a known field; did you mean 'plugins'?",
        "vary.scale-arrivals: has no values",
        "vary.seed: must not be given here, because the field seeds gives it",
        "exclude[0].scale-arrival: does not vary in this experiment; did you mean 'scale-arrivals'?",
        "random: 'many' is not understood: write COUNT@SEED",
        "seeds.count: 0 is out of range",
        "keep: 'some' is not one of metrics, all",
        "zip[0]: its lists must have the same length: a/b.weight 2, a/c.weight 1",
    ):
        assert sentence in told


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"vary": {"scale-arivals": [1]}}, "vary.scale-arivals: scale-arivals is not a setting of a replay"),
        ({"vary": {"scale-arrivals": [1, -2]}}, "vary.scale-arrivals: -2: arrivals cannot be scaled by '-2'"),
        ({"vary": {"ClusterQueue/c.weight": [1]}}, "no ClusterQueue/c with knobs"),
        ({"vary": {"ClusterQueue/a.weight": [1, "much"]}}, "vary.ClusterQueue/a.weight: much"),
        ({"vary": {"ClusterQueue/a.borrowingLimit[cpu]": ["x2"]}}, "contain no value that x2 could multiply"),
        ({"vary": {"evictionLatency": ["soon"]}}, "option evictionLatency: 'soon' is not a duration"),
        ({"settings": {"until": "soon"}}, "until: 'soon' is not a duration"),
        (
            {"settings": {"untill": "1d"}},
            "settings.untill: is not a setting of a replay; did you mean 'until'?",
        ),
        (
            {"settings": {"until": "1d"}, "vary": {"until": ["2d"]}},
            "settings.until: is also a factor; give it in only one place",
        ),
        ({"plugins": ["fairshare"]}, "plugins[0]: there is no policy 'fairshare'"),
        ({"trace": "absent.parquet"}, "there is no such file"),
        ({"seeds": {"count": 2, "weeks": "30d"}}, "less than two blocks"),
        ({"seeds": {"count": 2, "shake": "arrival=1m"}}, "'arrival' cannot be varied"),
        ({"seeds": {"count": 2, "days": "1"}}, "seeds.days: is not a kind of draw"),
        ({"seeds": {"count": 2, "sample": "0.5@7"}}, "already has a seed"),
        ({"metrics": ["wating"]}, "there is no family 'wating'; did you mean 'waiting'?"),
        ({"seeds": {"count": 2, "weeks": "30d"}}, "weeks: 1d}' draws days, and '1h' draws hours"),
        ({"vary": {"window": ["90d..91d"]}}, "leaves no job"),
        ({"vary": {"scale-arrivals": [1]}, "exclude": [{"scale-arrivals": 1}]}, "leaves out all 1 points"),
        ({"patches": {"more": "patch.yaml"}}, "patch more: the patch: document 1, ClusterQueue absent"),
    ],
)
def test_every_value_is_tried_before_the_first_replay(
    fields: dict[str, object], told: str, spec: Callable[..., Spec]
) -> None:
    """What a setting, an option or a knob refuses is a fault of the specification."""
    with pytest.raises(SpecError) as caught:
        items_of(prepared(spec(**fields), load()))
    assert told in str(caught.value)


def test_a_setting_that_all_points_need_is_not_left_out(spec: Callable[..., Spec], world: Path) -> None:
    """Without `tenants`, no queue fits. Within the window, `top:1` keeps another queue."""
    (world / "cluster.yaml").write_text(queues({"a": {"cpu": "4"}, "other": {"cpu": "2"}}))
    assert items_of(prepared(spec(settings={"tenants": "top:1"}), load()))
    with pytest.raises(SpecError) as caught:
        items_of(prepared(spec(settings={"tenants": "top:1", "window": "0h..6h"}), load()))
    (fault,) = caught.value.faults
    assert fault.where == "settings.window"
    assert "queue: 'b' is neither a LocalQueue" in fault.what


def test_the_share_of_a_sample_is_a_number_or_text(spec: Callable[..., Spec]) -> None:
    """As docs/experiments.md writes it."""
    written = [spec(seeds={"count": 10, "sample": share}).seeds for share in (0.5, "0.5")]
    assert written[0] == written[1]
    assert len(items_of(prepared(spec(seeds={"count": 3, "sample": 0.5}), load()))) == 3


def test_the_grid_of_the_examples_has_600_items() -> None:
    """Five policies, four loads, three loss models and ten seeds, all of which can be replayed."""
    grid = load_spec(Path(__file__).parents[2] / "docs" / "examples" / "grid.yaml")
    items = items_of(prepared(grid, load()))
    assert [len(factor.values) for factor in grid.factors] == [5, 4, 3, 10]
    assert len({item.key for item in items}) == 600


def test_an_item_that_waits_takes_some_400_bytes(spec: Callable[..., Spec]) -> None:
    """Which is what a million of them may take a million times."""
    bench = prepared(spec(vary={"scale-arrivals": [1, 2]}, seeds=1000), load())
    tracemalloc.start()
    items = items_of(bench)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(items) == 2000
    assert taken / len(items) < 500


def test_faults_of_values_are_told_all_at_once_each_with_its_field(spec: Callable[..., Spec]) -> None:
    """One that every item would have hides none of the others, and is not told of another field."""
    fields: dict[str, object] = {
        "settings": {"on-preemption": "restrat", "startup": "1s"},
        "vary": {
            "scale-arivals": [1],
            "ClusterQueue/c.weight": [1, 2],
            "ClusterQueue/a.wieght": [1, 2],
            "scale-arrivals": [0, 1, "x"],
        },
        "seeds": {"count": 2, "weeks": "30d"},
    }
    with pytest.raises(SpecError) as caught:
        prepared(spec(**fields), load())
    assert [fault.where for fault in caught.value.faults] == [
        "vary.scale-arivals",
        "settings.on-preemption",
        "seeds",
        "vary.ClusterQueue/c.weight: 1",
        "vary.ClusterQueue/a.wieght: 1",
        "vary.scale-arrivals: 0",
        "vary.scale-arrivals: x",
    ]


def test_a_command_line_varies_what_a_file_does(spec: Callable[..., Spec]) -> None:
    """`--vary` adds a factor, or gives one other values; numbers are numbers."""
    varied = from_texts(["scale-arrivals=0.8,1", "on-preemption=restart,resume"])
    assert varied == {"scale-arrivals": [0.8, 1], "on-preemption": ["restart", "resume"]}
    found = more_varied(spec(vary={"scale-arrivals": [3]}, settings={"on-preemption": "resume"}), varied)
    assert [(each.name, each.values) for group in found.groups for each in group] == [
        (name, tuple(values)) for name, values in varied.items()
    ]
    assert not found.settings


def test_more_than_a_million_items_are_refused(world: Path) -> None:
    """The fault says how to draw some of them."""
    path = world / "large.yaml"
    values = list(range(1, 1002))
    path.write_text(
        f"trace: trace.parquet\nplugins: [none]\nvary: {{scale-arrivals: {values}, until: {values}}}\n"
    )
    with pytest.raises(SpecError, match="1,002,001 items, but there can be at most 1,000,000"):
        load_spec(path)
