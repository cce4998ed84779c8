"""A report of an experiment has everything that is needed to repeat the experiment."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.plugins import load
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.objectives import Judged
from harness.studies.experiments.parsing import load_spec, more_varied, spec_of
from harness.studies.experiments.preparation import prepared
from harness.studies.experiments.provenance import fields_of
from harness.studies.experiments.report import report
from harness.studies.experiments.specification import Spec
from harness.studies.experiments.sweep import Sweep

DRAWN = {"count": 2, "shake": "arrivals=30s,ties"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"cluster": None, "seeds": 3, "keep": "all", "metrics": None},
        {"trace": None, "traces": {"a": "trace.parquet", "b": "/elsewhere/trace.parquet"}},
        {"cluster": "cluster.yaml,patch.yaml", "patches": ["patch.yaml"]},
        {"plugins": ["none", "fairsharing@a", {"fairsharing@b": {"evictionLatency": "10s"}}]},
        {"settings": {"until": "7d", "priority-from": "user"}, "random": "3@7", "seeds": DRAWN},
        {
            "vary": {"scale-arrivals": [1, 1.5, "2"], "a.borrow": [True, "true", None]},
            "zip": [{"until": ["1d", "2d"], "startup": ["1s", "2s"]}],
            "exclude": [{"scale-arrivals": [1, 1.5], "until": "1d"}],
            "seeds": {"count": 2, "first": 5, "sample": 0.5},
        },
    ],
)
def test_the_fields_of_a_specification_make_it_again(
    spec: Callable[..., Spec], fields: dict[str, Any]
) -> None:
    """Whatever it has; also after the command line has added factors."""
    for asked in (spec(**fields), more_varied(spec(**fields), {"on-preemption": ["restart", "resume"]})):
        again = spec_of(fields_of(asked), source=asked.source, folder=asked.folder)
        assert again == replace(asked, settings=again.settings)
        assert dict(again.settings) == dict(asked.settings)


def test_the_page_has_what_repeats_the_experiment(
    spec: Callable[..., Spec], world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its specification makes the same items; traces, clusters and code have their checksums."""
    monkeypatch.chdir(world)
    asked = spec(vary={"scale-arrivals": [1, 2]}, seeds=DRAWN, plugins=["kueue-classic"])
    sweep = Sweep(prepared(asked, load()), Path("out"))
    made = sweep.run(workers=1)
    told = report(Judged(made), command="harness experiment report out/small").markdown()
    text = told[told.index("What this rests on") :]
    trace = next(iter(sweep.bench.inputs.traces.values()))
    cluster = next(iter(sweep.bench.inputs.clusters.values()))
    assert cluster is not None
    for fact in (f"trace.parquet, 45 jobs, sha256 {trace.sha256}", f"sha256 {cluster.digest}"):
        assert fact in text
    assert "- seeds 1 to 2: shake arrivals=30s,ties" in text.replace("\\", "")
    assert re.search(r"plugin kueue-classic \S+: code sha256 [0-9a-f]{64}", text)
    assert "no manifest names the release of Kueue" in text
    assert f"    harness sweep {world}/sweep.yaml -o out\n    harness experiment report out/small" in text
    (lines,) = re.findall(
        r"<details><summary>The specification.*?</summary>\n\n(.*?)\n</details>", text, re.DOTALL
    )
    (world / "saved.yaml").write_text(lines.replace("\n    ", "\n").removeprefix("    "))
    saved = Sweep(prepared(load_spec(world / "saved.yaml"), load()), Path("out"))
    assert [item.key for item in saved.items] == [item.key for item in sweep.items]


def test_an_experiment_from_before_origins_were_kept_has_its_report(
    spec: Callable[..., Spec], tmp_path: Path
) -> None:
    """The page then says what varies, and that inputs are missing."""
    made = Sweep(prepared(spec(), load()), tmp_path / "results").run(workers=1)
    kept = {name: value for name, value in made.description.items() if name != "made_from"}
    told = report(Judged(Experiment(made.root, kept)), command="harness experiment report x").markdown()
    assert "What varies" in told
    assert "An older release of harness made this experiment" in told
    assert "sha256" not in told
    assert "    harness experiment report x" in told
