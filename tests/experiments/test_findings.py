"""What is found in an experiment's table: means over seeds, effects, the frontier, and differences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from cli_environment import called
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.comparison.statistics.frontier import undominated
from harness.analysis.report import Figure, Table, Text
from harness.base.errors import OptionError, RunError
from harness.studies.experiments.compared import Compared
from harness.studies.experiments.effects import effects, unpaired
from harness.studies.experiments.evaluation import Item, written
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.frontier import circumstances, frontier, outcomes, shifts
from harness.studies.experiments.objectives import Judged, estimate
from harness.studies.experiments.report import report
from harness.studies.experiments.specification import Arm, Factor, Seeds, Spec
from harness.studies.experiments.store import Folder
from harness.studies.experiments.table import show

WAIT, LOST = "wait.first_start.p95", "disruption.lost"


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., Judged]:
    """An experiment whose values are made by functions of the setting, instead of by replays."""

    def make(
        wait: Callable[[int, str, int], float],
        seeds: int = 1,
        loads: Sequence[int | float | str] = (1, 2, 3),
        names: tuple[str, str] = ("load", "model"),
        **how: object,
    ) -> Judged:
        factors = (Factor(names[0], tuple(loads)), Factor(names[1], ("restart", "resume")))
        spec = Spec(
            *("made", "made", {"t": Path("t")}, (Arm("none", "none"),)),
            groups=tuple((factor,) for factor in factors),
            seeds=Seeds(seeds),
        )
        folder = Folder(tmp_path / "made")
        items, points = (
            [],
            [(a, b, s) for a in loads for b in ("restart", "resume") for s in range(1, seeds + 1)],
        )
        for number, (value, model, seed) in enumerate(points):
            point = {"plugin": "none", names[0]: value, names[1]: model, "seed": seed}
            load = 1 + loads.index(value)
            items.append(Item(number, f"{number:032}", point))
            row = {"scope": "all", "resource": "", "unit": "s", "better": "lower"}
            rows = [
                {**row, "metric": WAIT, "value": wait(load, model, seed)},
                {**row, "metric": "wait.first_start.mean", "scope": "queue=a", "value": float(load)},
                {**row, "metric": "wait.first_start.mean", "scope": "queue=b", "value": float(-load)},
                {**row, "metric": LOST, "resource": "cpu", "value": 5.0, "unit": "core-hours"},
                {
                    **row,
                    "metric": LOST,
                    "resource": "x/gpu",
                    "value": 0.0 if model == "resume" else float(load),
                },
            ]
            path = folder.file(f"{number:032}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(written(pl.DataFrame(rows).to_arrow(), {"stopped": ""}))
        folder.describe(spec, items)
        return Judged(Experiment.open(folder.root), **how)  # type: ignore[arg-type]

    return make


def test_a_mean_over_seeds_has_students_interval() -> None:
    """Of 1 to 10 it is 5.5 ± 2.262 standard errors; of one value nothing can be said."""
    found = estimate([float(each) for each in range(1, 11)])
    assert found.value == 5.5
    assert found.low == pytest.approx(5.5 - 2.262 * 0.9574, abs=0.003)
    assert found.high == pytest.approx(5.5 + 2.262 * 0.9574, abs=0.003)
    assert estimate([3.0]) == (3.0, None, None, None, 1, "", False)


def test_effects_are_paired_with_settings_that_differ_in_nothing_else(judged: Callable[..., Judged]) -> None:
    """What a seed adds to all settings alike is in no effect, nor in its interval."""
    found = judged(
        lambda load, model, seed: 10 * load + (5 if model == "resume" else 0) + 100 * seed, seeds=3
    )
    told = {(each.factor, each.value): each for each in effects(found, found.objectives[0])}
    assert {key: each.difference.value for key, each in told.items()} == {
        ("load", 2): 10,
        ("load", 3): 20,
        ("model", "resume"): 5,
    }
    assert told["load", 2].difference.low == told["load", 2].difference.high == 10
    assert told["load", 2].base.value == 10 + 2.5 + 200


def test_what_always_varies_with_something_else_has_no_effect_and_is_named(
    judged: Callable[..., Judged],
) -> None:
    """All values of a factor, as in a zip, or one of them."""
    found = judged(lambda load, model, seed: 10 * load)
    assert unpaired(found) == ""
    settings = {(each.point["load"], each.point["model"]): each for each in found.settings}
    found.settings = [settings[1, "restart"], settings[2, "resume"]]
    assert not effects(found, found.objectives[0])
    why = "no setting has the factor's first value and otherwise the same values"
    told = f"he effect of load, model is unknown: {why}"
    assert f"t{told}" in show(found)
    blocks = {chapter.name: chapter.blocks for chapter in report(found).chapters}
    assert blocks["effects"] == [Text(f"T{told}.")]
    found.settings.append(settings[2, "restart"])
    assert unpaired(found) == ""
    found.settings.append(settings[3, "resume"])
    assert unpaired(found).startswith("the effect of load=3 is unknown: ")


@pytest.mark.parametrize("loads", [(1, 2, 0.5), ("b", "a", "1.0")])
def test_effects_are_against_the_first_value_that_the_experiment_says(
    judged: Callable[..., Judged], loads: Sequence[int | float | str]
) -> None:
    """Whatever value the first item has, as where points are drawn of the grid."""
    found = judged(lambda load, model, seed: 10 * load, loads=loads)
    backwards = Judged(found.experiment)
    backwards.settings = found.settings[::-1]
    of_load = [each for each in effects(backwards, backwards.objectives[0]) if each.factor == "load"]
    assert of_load == [each for each in effects(found, found.objectives[0]) if each.factor == "load"]
    assert [(str(each.against), each.difference.value) for each in of_load if each.difference] == [
        (str(found.settings[0].point["load"]), 10),
        (str(found.settings[0].point["load"]), 20),
    ]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=25))
def test_the_frontier_is_what_no_other_beats(costs: list[tuple[int, int, int]]) -> None:
    """A place is in it if and only if nothing is as low in all and lower in one."""

    def beaten(mine: tuple[int, ...]) -> bool:
        return any(all(a <= b for a, b in zip(each, mine, strict=True)) and each != mine for each in costs)

    assert undominated(costs) == {at for at, mine in enumerate(costs) if not beaten(mine)}


def test_the_frontier_weighs_all_objectives(judged: Callable[..., Judged]) -> None:
    """Resuming loses nothing and waits longer; of its loads the shortest wait stays."""
    found = judged(lambda load, model, seed: load + (10 if model == "resume" else 0))
    assert [each.resource for each in found.objectives] == ["", "x/gpu"]
    best = [
        (each.setting.point["load"], each.setting.point["model"]) for each in outcomes(found) if each.best
    ]
    assert best == [(1, "restart"), (1, "resume")]
    assert [(each.queue, each.after.value) for each in shifts(found)[4]] == [("b", -3), ("a", 3)]


def test_a_setting_beats_no_other_at_another_load(judged: Callable[..., Judged]) -> None:
    """Nobody chooses the load: each has a frontier, and its settings follow each other."""
    found = judged(
        lambda load, model, seed: 10 * load + (model == "resume"),
        names=("scale-arrivals", "x.order"),
        objectives=[WAIT, "disruption.lost{resource=cpu}"],
    )
    assert circumstances(found) == ["scale-arrivals"]
    best = [each.setting.point for each in frontier(found, outcomes(found))]
    assert [(each["scale-arrivals"], each["x.order"]) for each in best] == [
        *((1, "restart"), (2, "restart"), (3, "restart"))
    ]
    assert "frontier at each scale-arrivals" in show(found)
    lead, *_ = report(found).chapters[0].blocks
    told = f"Of 6 settings there are 3 that no other setting beats in {WAIT}, disruption.lost cpu"
    assert lead == Text(f"{told} at the same scale-arrivals.", lead=True)


def test_settings_are_compared_seed_by_seed(judged: Callable[..., Judged]) -> None:
    """A difference that all seeds have is told from chance, however much seeds differ among themselves."""
    found = judged(lambda load, model, seed: 100 * load + 1000 * seed + seed % 2, seeds=6)
    told = Compared(found, [0, 12]).text()
    assert "item 0: plugin=none, load=1, model=restart" in told
    (line,) = (line for line in told.split("\n") if line.startswith(WAIT))
    assert "▼" in line
    assert "of differences paired by seed" in told
    with pytest.raises(OptionError, match="two of the items belong to the same setting"):
        Compared(found, [0, 1])
    with pytest.raises(OptionError, match="item 99 does not exist"):
        Compared(found, [0, 99])


def test_metrics_are_compared_of_all_resources(
    judged: Callable[..., Judged], capsys: pytest.CaptureFixture[str]
) -> None:
    """By name alone, as headlines are; one that was not measured of all jobs is refused."""
    found = judged(lambda load, model, seed: load)
    assert called(["experiment", "compare", str(found.experiment.root), "0", "2", "--metric", LOST]) == 0
    told = capsys.readouterr().out
    assert [line.split("  ")[0] for line in told.splitlines() if line.startswith(LOST)] == [
        f"{LOST} cpu",
        f"{LOST} x/gpu",
    ]
    with pytest.raises(RunError, match=r"disruption\.los was not measured") as caught:
        Compared(found, [0, 2], ["disruption.los"])
    assert caught.value.hint == "did you mean 'disruption.lost'?"
    with pytest.raises(RunError, match=r"wait\.first_start\.mean was not measured"):
        Compared(found, [0, 2], ["wait.first_start.mean"])


def test_a_comparison_of_settings_has_the_formats_of_other_comparisons(
    judged: Callable[..., Judged], capsys: pytest.CaptureFixture[str]
) -> None:
    """A table, Markdown, JSON and CSV of the same figures."""
    found = judged(lambda load, model, seed: 100 * load + seed, seeds=3)
    told = {}
    for form in ("table", "markdown", "csv", "json"):
        assert called(["experiment", "compare", str(found.experiment.root), "0", "6", "--format", form]) == 0
        told[form] = capsys.readouterr().out
    assert called(["experiment", "compare", str(found.experiment.root), "0", "6", "--json"]) == 0
    assert capsys.readouterr().out == told["json"]
    document = json.loads(told["json"])
    assert document["baseline"] == "item 0"
    assert document["settings"][1] == {
        "name": "item 6",
        "item": 6,
        "values": {"plugin": "none", "load": 2, "model": "restart"},
    }
    wait, *_ = document["metrics"]
    assert wait["metric"] == WAIT
    rows = pl.read_csv(told["csv"].encode())
    (change,) = rows.filter(metric=WAIT, run="item 6").iter_rows(named=True)
    assert change["value"] == wait["values"]["item 6"]
    assert [change["low"], change["high"]] == wait["changes"]["item 6"]["interval"]
    assert "| metric | item 0 | item 6 | item 6 against item 0 |" in told["markdown"]
    figures = {form: re.findall(r"\+[0-9.]+ % ", told[form]) for form in ("table", "markdown")}
    assert figures["table"] == figures["markdown"]
    assert figures["table"][0] == f"{100 * wait['changes']['item 6']['relative']:+.1f} % "
    for form in ("table", "markdown"):
        assert "of differences paired by seed" in told[form]


def test_what_is_shown_can_be_narrowed(judged: Callable[..., Judged]) -> None:
    """Only items that are set so are looked at; the text has the state, the effects and the frontier."""
    found = judged(lambda load, model, seed: load, where={"load": "2"})
    assert {each.point["load"] for each in found.settings} == {2}
    told = show(found)
    assert told.startswith("made: 6 of 6 items, 2 settings")
    assert "effect on wait.first_start.p95" in told
    assert "frontier" in told
    assert "6 settings, 3 seeds (weeks 7d) each" in show(judged(lambda load, *_: load, seeds=3))
    one = judged(lambda load, *_: load, seeds=3, where={"seed": "2"})
    assert "6 settings, 1 seed (weeks 7d) each" in show(one)
    with pytest.raises(OptionError, match="lod does not vary in this experiment"):
        judged(lambda load, model, seed: load, where={"lod": "2"})
    with pytest.raises(OptionError, match="load is never '7'"):
        judged(lambda load, model, seed: load, where={"load": "7"})


def test_one_effect_is_told_in_one_unit(judged: Callable[..., Judged]) -> None:
    """In per cent of the first value, where effects are shown and where two settings are compared."""
    found = judged(lambda load, model, seed: 100 * load, seeds=3, where={"model": "restart"})
    first, second = (each.item for each in found.settings[:2])
    line = next(line for line in show(found).split("\n") if line.startswith("load=2 "))
    compared = Compared(found, [first, second], ["wait.first_start.p95"]).text()
    (row,) = [line for line in compared.split("\n") if line.startswith("wait.first_start.p95")]
    told = re.findall(r"[+-][0-9.]+ %", line)
    assert told
    assert told[0] in row


@pytest.mark.parametrize(
    ("loads", "asked", "place"),
    [
        ((0.1, 0.1 + 0.2, "1/3"), "0.30000000000000004", 2),
        ((0.1, 0.1 + 0.2, "1/3"), "0.3", 2),
        ((0.1, 0.1 + 0.2, "1/3"), "1/3", 3),
        ((1.0, "1/3"), "1", 1),
        ((1, 0.1 + 0.2), "1", 1),
        ((1, 0.1 + 0.2), "0.30000000000000004", 2),
        ((0.3, 0.1 + 0.2), "0.3", 1),
        ((1500.5, 2), "1500.5", 1),
        ((True, False), "true", 1),
        (("007", "7"), "7", 2),
    ],
)
def test_a_value_is_found_as_it_was_given_and_as_it_is_shown(
    judged: Callable[..., Judged], loads: tuple[object, ...], asked: str, place: int
) -> None:
    """With all of the digits that a computation gave, and among texts, where the table has texts only."""
    found = judged(lambda load, model, seed: load, loads=loads, where={"load": asked})
    assert {each.item for each in found.settings} == {2 * place - 2, 2 * place - 1}


@pytest.mark.parametrize(
    ("objective", "told"),
    [
        ("wait.first_start.p59", "wait.first_start.p59 was not measured"),
        ("disruption.lost", "disruption.lost needs a resource: cpu, x/gpu"),
        ("disruption.lost{resource=x/gpu", "is not understood"),
        ("wait.first_start.p95{queue=c}", "was not measured for queue=c"),
    ],
)
def test_an_objective_that_was_not_measured_is_refused(
    objective: str, told: str, judged: Callable[..., Judged]
) -> None:
    """The error says what was measured."""
    with pytest.raises((OptionError, RunError)) as caught:
        judged(lambda load, model, seed: load, objectives=[objective])
    assert told in str(caught.value)


def test_the_report_says_what_the_tables_say(judged: Callable[..., Judged]) -> None:
    """Frontier, effects, pairs of factors and queues, from the same figures; every chart can be drawn."""
    pytest.importorskip("altair", reason="charts need altair: pip install 'harness-replay[report]'")
    pytest.importorskip("vl_convert", reason="charts need vl-convert: pip install 'harness-replay[report]'")
    found = judged(lambda load, model, seed: 100.0 * load + (10 if model == "resume" else 0) + seed, seeds=3)
    made = report(found, command="harness experiment report made")
    assert [chapter.name for chapter in made.chapters] == [
        *("frontier", "queues", "effects", "pairs", "multiples", "assumed")
    ]
    blocks = {chapter.name: chapter.blocks for chapter in made.chapters}
    lead, table, chart = blocks["frontier"]
    assert lead == Text(
        f"Of 6 settings there are 2 that no other setting beats in {WAIT}, disruption.lost x/gpu.", lead=True
    )
    assert isinstance(table, Table)
    assert [row[1] for row in table.rows] == [str(each.setting.item) for each in outcomes(found) if each.best]
    assert isinstance(chart, Figure)
    page = made.html()
    told = re.findall(r"<title>(item \d+: [^<]*)</title>", page)
    assert {text.split(":")[0] for text in told} == {f"item {each.item}" for each in found.settings}
    (waits, *_) = effects(found, found.objectives[0])
    assert isinstance(blocks["effects"][0], Figure)
    assert f"{waits.factor}={waits.value} instead of {waits.against}: +93.5 % [" in blocks["effects"][0].words
    assert isinstance(blocks["pairs"][0], Figure)
    assert "load=3, model=resume: 5m12s." in blocks["pairs"][0].words
    assert made.html() == page
    assert "harness experiment report made" in made.markdown()


def test_the_report_of_an_experiment_without_seeds_says_so(judged: Callable[..., Judged]) -> None:
    """What nothing tells from luck is no finding."""
    made = judged(lambda *_: 1.0).experiment
    once = Judged(Experiment(made.root, {**made.description, "seeds": None}))
    texts = [block.text for block in report(once).chapters[0].blocks if isinstance(block, Text)]
    assert "so luck may explain small differences" in texts[1]
