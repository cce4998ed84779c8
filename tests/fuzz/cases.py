"""A seed as a case: files, and commands that read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import polars as pl

from fuzz import manifests, options, traces
from fuzz.formats import read

_PLUGINS = ("none", "default-preemption", "kueue-classic", "fairsharing", "elasticquota", "auto")
Chain = tuple[int, list[list[str]]]
"""How often commands are chosen where only some are run, and the commands, one after the other."""


@dataclass(frozen=True)
class Case:
    """Files, and commands that read them.

    Attributes:
        seed: makes the case again.
        kind: what was mutated.
        files: name -> contents.
        chains: commands, in chains: what a chain leaves is read by its later commands. `{runs}`, `{run}`,
            `{first}` and `{last}` stand for run folders that are there by then.
    """

    seed: int
    kind: str
    files: dict[str, bytes]
    chains: tuple[Chain, ...]

    def brief(self) -> list[list[list[str]]]:
        """One of the chains, the cheap ones more often."""
        random = Random(f"{self.seed} brief")
        return [random.choices([chain for _, chain in self.chains], [weight for weight, _ in self.chains])[0]]

    def thorough(self) -> list[list[list[str]]]:
        """All chains."""
        return [chain for _, chain in self.chains]


def case_of(seed: int) -> Case:
    """The case of a seed; the same one each time."""
    random = Random(seed)
    (kind,) = random.choices(list(_KINDS), [weight for weight, _ in _KINDS.values()])
    files, chains = _KINDS[kind][1](random)
    return Case(seed, kind, files, tuple(chains))


_Made = tuple[dict[str, bytes], list[Chain]]


def _of_traces(random: Random) -> _Made:
    files = {"trace.parquet": traces.trace(random)}
    if random.randrange(2):
        files["cluster.yaml"] = _sound_cluster(random)
    return files, _reading("trace.parquet", [], random, cluster="cluster.yaml" in files)


def _of_formats(random: Random) -> _Made:
    files, main, reader, settings = read(random)
    chosen = [] if random.randrange(3) == 0 else ["--reader", reader]
    for setting in settings:
        chosen += ["--set", setting]
    return files, _reading(main, chosen, random)


def _reading(main: str, chosen: list[str], random: Random, *, cluster: bool = False) -> list[Chain]:
    """What there is to do with a trace; only canonical ones are replayed at once."""
    where = ["--cluster", "cluster.yaml"] if cluster else []
    chains: list[Chain] = [
        (30, [["trace", "check", main, *chosen, *where]]),
        (4, [["trace", "info", main, *chosen, "--json"]]),
        (4, [["trace", "lint", main, *chosen, *where, "--json"]]),
        (4, [["trace", "calibrate", main, *chosen, "--target-load", "0.8", *where, "--json"]]),
        (
            2,
            [
                [
                    "cluster",
                    "init",
                    main,
                    *chosen,
                    *random.choice(([], ["--node-pool"], ["--quota", "proportional"])),
                ]
            ],
        ),
    ]
    canonical = not chosen and main == "trace.parquet"
    converted = main if canonical else "made.parquet"
    convert = [["trace", "convert", main, "made.parquet", *chosen]]
    chains.append((3, convert))
    before = [] if canonical else convert
    chains.append(
        (1, [*before, ["trace", "generate", "--fit", converted, "-o", "like.parquet", "--block", "1s"]])
    )
    replays = [[*_replay(converted, plugin), *where] for plugin in random.sample(_PLUGINS, 2)]
    return [*chains, *((1, [*before, replay]) for replay in replays)]


def _of_clusters(random: Random) -> _Made:
    files = {"cluster.yaml": manifests.cluster(random), "trace.parquet": _sound_trace(random)}
    chains: list[Chain] = [
        (40, [["cluster", "check", "cluster.yaml", "--json"]]),
        (6, [["cluster", "convert", "cluster.yaml", "--to", random.choice(("elasticquota", "kueue"))]]),
        (
            6,
            [
                [
                    "cluster",
                    "convert",
                    "--keep",
                    "cluster.yaml",
                    "--to",
                    random.choice(("elasticquota", "kueue")),
                ]
            ],
        ),
        (2, [["trace", "lint", "trace.parquet", "--cluster", "cluster.yaml", "--json"]]),
        (2, [["trace", "check", "trace.parquet", "--cluster", "cluster.yaml"]]),
    ]
    scale = random.choice(([], [], [], ["--scale-cluster", "1/2"], ["--scale-cluster", "3"]))
    replays = [[*_replay("trace.parquet", plugin), "--cluster", "cluster.yaml"] for plugin in _PLUGINS]
    return files, [*chains, *((1, [[*replay, *scale]]) for replay in replays)]


def _of_specifications(random: Random) -> _Made:
    files = {"spec.yaml": manifests.specification(random)}
    made = ["trace", "generate", "spec.yaml", "-o", "made.parquet", "--jobs", "200"]
    replays = [_replay("made.parquet", random.choice(_PLUGINS))]
    return files, [
        (8, [made]),
        (1, [made, ["trace", "info", "made.parquet", "--json"]]),
        (1, [made, *replays]),
    ]


def _of_options(random: Random) -> _Made:
    files = {
        "trace.parquet": _sound_trace(random),
        "cluster.yaml": _sound_cluster(random),
        "bad.yaml": manifests.cluster(random),
        "spec.yaml": manifests.specification(Random(1)),
        "weights.csv": b"queue,weight\na,1\nb,2\nc,0\n",
    }
    chains: list[Chain] = []
    for name in options.COMMANDS:
        weight = 1 if name == "replay" else 3
        chains.append((weight, [options.command(name, random)]))
    return files, chains


def _of_names(random: Random) -> _Made:
    files = {"trace.parquet": traces.named(random)}
    replays = [_replay("trace.parquet", plugin) for plugin in random.sample(_PLUGINS[:4], 2)]
    chains: list[Chain] = [
        (1, [*replays, options.command(name, random)])
        for name in random.sample(sorted(options.OF_RUNS), len(options.OF_RUNS))
    ]
    chains.append((1, [*replays, ["report", "{runs}", "-o", "page.html"]]))
    chains.append(
        (2, [["trace", "info", "trace.parquet"], ["cluster", "init", "trace.parquet", "--tenants", "names"]])
    )
    return files, chains


def _replay(trace: str, plugin: str) -> list[str]:
    return ["replay", trace, "-p", plugin, "-o", "out", "-q"]


def _sound_trace(random: Random) -> bytes:
    return traces.written(pl.DataFrame(list(traces.whole(random.choice((3, 6, 12)), random).values())))


def _sound_cluster(random: Random) -> bytes:
    return "\n---\n".join(map(json.dumps, manifests.chosen(random))).encode()


_KINDS: dict[str, tuple[int, Callable[[Random], _Made]]] = {
    "traces": (35, _of_traces),
    "formats": (22, _of_formats),
    "clusters": (28, _of_clusters),
    "specifications": (4, _of_specifications),
    "options": (10, _of_options),
    "names": (1, _of_names),
}
