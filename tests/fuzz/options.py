"""Commands with options of any kind: what there is, asked of the commands themselves, and values for it."""

from __future__ import annotations

from random import Random

import click

from fuzz.formats import value_for
from fuzz.junk import HOSTILE, NUMBERS, QUANTITIES, TIMES
from harness.cli import cli
from harness.plugins import load

_FACTORS = (
    "0.5", "2", "1/8", "1/3", "1/0", "1e400", "1e-400", "nan", "inf", "-2", "0", "1e6", "1e-6", "1000000",
    "1e7",
    "0.000001", "x", "",
)  # fmt: skip
_VALUES: dict[str, tuple[str, ...]] = {
    "until": TIMES,
    "grace_period": TIMES,
    "span": (*TIMES, "1us", "100y", "36500d", "1h"),
    "block": (*TIMES, "1us", "1s", "2s", "5s"),
    "at": TIMES,
    "window": (
        "0s..1d", "1s..", "..2s", "..", "5s..1s", "1us..2us", "9999999999w..", "2026-01-01..2026-02-01",
        "2026-01-01..",
        "0001-01-01..9999-12-31", "-1s..", "1s..2026-01-01", "x..y", "..0", "",
    ),
    "sample": (
        "0.5", "0.5@7", "1", "0", "1e-300", "0.999999", "nan", "-1", "0.5@-1", "0.5@x", f"0.5@{10**30}", "@",
    ),
    "priority_from": (
        "queue=a:5", "queue=a:5,*:0", "duration=1:2", "submit_time=0:1", "request.cpu=1000:5", "labels=x:1",
        "gang=true:3", "note=x:1", "note=y:99999999999", "pods=1:1", "user=*:1", "nothing=a:1", "queue=a:x",
        "queue=",
        "=a:1", "queue=a:5,a:6", "queue=:5", "tolerations=[]:4", "grace_period=0:1", "harness.x=1:1",
        "job_id=j0:9",
    ),
    "priority_share": (
        "0.2:1000@7", "0.5:1,0.5:2", "1:5", "1.5:5", "0:1", "1/3:5", "0.1234567:1", "0.5:x", "0.5", "nan:1",
        "1e-9:1",
        f"0.5:1@{10**25}", "0.5:1@x", "1/0:1", f"0.5:{2**31}",
    ),
    "tenants": (
        "column:user", "column:duration", "column:labels", "column:request.cpu", "column:priority",
        "column:gang",
        "column:submit_time", "column:nothing", "top:1", "top:0", "top:99999999999999999999", "hash:2",
        "hash:1",
        "hash:99999999999999999999999", "names", "names:1", "column:user,top:1,hash:2,names", "x", "", ",",
        "top:x", "map:weights.csv", "map:nothing.csv", "map:trace.parquet", "map:.", "map:", "names,map:x",
    ),
    "scale_cluster": _FACTORS,
    "scale_arrivals": _FACTORS,
    "target_load": _FACTORS,
    "load": _FACTORS,
    "on_preemption": (
        "restart", "resume", "checkpoint=1s", "checkpoint=1s,restore=2s", "checkpoint=1us,restore=9999999w",
        "checkpoint=9999999w", "checkpoint=", "checkpoint=0", "restore=1s", "x", "",
    ),
    "node": (
        "cpu=4", "cpu=4,memory=1Gi", "cpu=1m", "memory=1", "cpu=0", "cpu=-1", "cpu=9223372036854775",
        "cpu=8Ei", "x=1",
        "nvidia.com/gpu=1", "cpu", "cpu=4,cpu=5", "=", "pods=1", "pods=0,cpu=4", "",
    ),
    "quota": ("equal", "proportional", "weights.csv", "nothing.csv", "trace.parquet", ""),
    "names": (
        "none", "none@a", "backfill", "recorded", "kueue-classic", "fairsharing", "default-preemption",
        "elasticquota", "auto",
        "none@", "@",
        "none@../x", "nothing", "none@none", "-", "",
    ),
    "seed": ("0", "-1", str(2**63), str(2**64), str(10**40), "x", "1.5"),
    "jobs": ("1", "5", "0", "-1", str(10**9), str(10**30), "x"),
    "most": ("0", "1", "-1", str(10**30)),
    "metrics": ("wait.*", "utilization.*", "*", "[", "", "nothing", "disruption.lost"),
    "scope": ("all", "queue", "priority", "reason", "queue=a", "queue=", "x", "", "priority=1"),
    "conditions": (
        "wait.first_start.p95 > +5%", "wait.first_start.p95{queue=a} > 5", "jobs.finished < 1",
        "jobs.finished > 0", "x",
        "wait.total.mean >", "utilization.allocated[cpu] < 1e400", "jobs.finished > nan",
        "jobs.finished > +1e999%", "",
    ),
    "baseline": ("none", "x", "", "none@a"),
    "cluster": (
        "cluster.yaml", "trace.parquet", "nothing.yaml", ".", "bad.yaml", "", "cluster.yaml,cluster.yaml",
        "cluster.yaml,bad.yaml", "cluster.yaml,", ",",
    ),
    "at_start": ("empty", "dump", "x", ""),
    "unfinished": ("draw", "drop", "limit", "2h", "0s", "x", ""),
    "clusters": (
        "cluster.yaml", "pr=cluster.yaml", "trace.parquet", "nothing.yaml", ".", "bad.yaml", "", "=", "a=",
        "=cluster.yaml", "a@b=cluster.yaml", "\0=cluster.yaml", "pr=cluster.yaml,nothing.yaml", "a,b",
    ),
    "patches": (
        "cluster.yaml", "pr=cluster.yaml", "trace.parquet", "nothing.yaml", ".", "",
        "base=cluster.yaml",
    ),
    "fit": ("trace.parquet", "cluster.yaml", "nothing", ".", ""),
    "reader": ("parquet", "swf", "csv", "kubernetes", "nothing", ""),
    "queue": ("a", "b", "nothing", ""),
}  # fmt: skip

COMMANDS: dict[str, tuple[str, ...]] = {
    "replay": ("trace.parquet", "--cluster", "cluster.yaml", "-o", "out"),
    "validate": ("trace.parquet", "--cluster", "cluster.yaml", "-o", "out"),
    "trace check": ("trace.parquet",),
    "trace info": ("trace.parquet",),
    "trace lint": ("trace.parquet",),
    "trace calibrate": ("trace.parquet", "--target-load", "0.8"),
    "trace convert": ("trace.parquet", "made.parquet"),
    "trace generate": ("-o", "made.parquet"),
    "cluster check": ("cluster.yaml",),
    "cluster convert": ("cluster.yaml", "--to", "elasticquota"),
    "cluster patch": ("cluster.yaml", "cluster.yaml"),
    "cluster init": ("trace.parquet",),
    "plugins": (),
}
"""Commands with what they need, for files that `fuzz.cases` writes; runs are read by others."""

OF_RUNS: dict[str, tuple[str, ...]] = {
    "compare": ("{runs}",),
    "report": ("{runs}", "--format", "markdown"),
    "explain": ("{run}", "j0"),
    "diff": ("{first}", "{last}"),
    "trace from-run": ("{run}", "made.parquet"),
}
"""The same for commands that read finished runs."""

_POLICIES = list(load().policies)
_SAFE = ("output",)


def command(name: str, random: Random) -> list[str]:
    """A command with one to three of its options, and values that may not be theirs."""
    words = [*name.split(), *{**COMMANDS, **OF_RUNS}[name]]
    if name == "trace generate":
        words += random.choice(
            (["--fit", "trace.parquet"], ["spec.yaml"], [], ["--fit", "trace.parquet", "spec.yaml"])
        )
    found: click.Command = cli
    for word in name.split():
        assert isinstance(found, click.Group)
        context = click.Context(found)
        inner = found.get_command(context, word)
        assert inner is not None
        found = inner
    options = [each for each in found.params if isinstance(each, click.Option) and each.name not in _SAFE]
    for option in random.sample(options, min(len(options), random.choice((1, 1, 2, 3)))):
        words += _given(option, random)
    if random.randrange(25) == 0:
        words.insert(
            random.randrange(len(words) + 1), random.choice(("--nothing", "-z", "--", "-", "", "\x1b[31m"))
        )
    return [word.replace("\0", "0") for word in words]


def _given(option: click.Option, random: Random) -> list[str]:
    name, flag = str(option.name), random.choice(option.opts)
    if option.is_flag or option.count:
        return [flag]
    if name == "settings":
        spec = random.choice(_POLICIES)
        if not spec.options or random.randrange(8) == 0:
            return [
                flag,
                random.choice(("order=fifo", "=", ".=", "a..order=x", "order=", "x", "order", "none.order=")),
            ]
        each = random.choice(spec.options)
        return ["-p", spec.name, flag, f"{each.name}={value_for(each, random)}"]
    if isinstance(option.type, click.Choice) and random.randrange(4):
        return [flag, str(random.choice(list(option.type.choices)))]
    if random.randrange(6) and name in _VALUES:
        return [flag, random.choice(_VALUES[name])]
    return [flag, str(random.choice((*HOSTILE, *TIMES, *QUANTITIES, *map(str, NUMBERS))))]
