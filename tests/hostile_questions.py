"""Hostile questions for the tool server, made from numbers: each is one that has to be refused in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

Arguments = dict[str, Any]

GPU = "nvidia.com/gpu"
SECRET = "hunter2"
"""What stands in files outside of the folders."""

PATHS: Mapping[str, tuple[str, ...]] = {
    "simulate": ("cluster",),
    "forecast": ("cluster", "history"),
    "what_if": ("trace", "cluster"),
    "explain": ("run",),
    "compare": ("runs",),
    "list_runs": ("folder",),
}
"""Tool -> its arguments that are paths."""

NEEDED: Mapping[str, Arguments] = {
    "simulate": {"cluster": "dump.json"},
    "forecast": {"cluster": "dump.json"},
    "what_if": {"trace": "dump.json", "patch": [{"kind": "ClusterQueue", "metadata": {"name": "q"}}]},
    "explain": {"run": "dump.json"},
    "compare": {"runs": ["dump.json", "dump.json"]},
    "list_runs": {},
}
"""Tool -> arguments without which it does not get as far as what is hostile."""

_OUTSIDE = (
    "../outside/secret.yaml", "../outside", "..", "link.yaml", "folder", "folder/deep.yaml", "round", "/",
    "/etc/passwd", "/proc/self/environ", "/proc/1/mem", "/dev/zero", "/dev/stdin", "-", "~", "~/.ssh",
    "file:///etc/passwd", "http://127.0.0.1:1/", "\0", "dump.json\0.yaml", "nothing.yaml", "dump.json/..",
    "%2e%2e/outside", "..\\outside", "dump.json/../../outside/secret.yaml", "*", "$HOME", "`id`", "\u202e",
    "",
)  # fmt: skip
_EMPTY = ("folder", "dump.json/..", "")
"""Folders that may be looked into, and hold no run."""

_NOT_TEXTS: tuple[Any, ...] = (7, -1.5, True, None, [], {}, ["dump.json"], {"path": "dump.json"}, [[]])
_AMOUNTS = (
    "-1", "1e999999", "99999999999999999999999999", "NaN", "Infinity", "1" * 5000, "1Zi", "", " ", "\0",
    "0x10", [], {}, True, -5, 1.5,
)  # fmt: skip
_NUMBERS: tuple[Any, ...] = (-1, 2**31, 2**63, 10**40, 1.5, "many", [], {}, True)


class Hostile(NamedTuple):
    """A question.

    Attributes:
        kind: what is hostile about it.
        tool, arguments: what is asked.
    """

    kind: str
    tool: str
    arguments: Arguments


def hostile(number: int) -> Hostile:
    """The question of a number."""
    random = Random(f"hostile {number}")
    kind = random.choices(list(KINDS), weights=[weight for _, weight in KINDS.values()])[0]
    tool, arguments = KINDS[kind][0](random)
    return Hostile(kind, tool, arguments)


def job(**changed: Any) -> Arguments:
    """A Job of the queue `q`, with some fields of `spec` changed."""
    container = {"name": "c", "resources": {"requests": {GPU: "1"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "mine", "namespace": "d", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "template": {"spec": {"containers": [container]}},
            **changed,
        },
    }


def _path(random: Random) -> tuple[str, Arguments]:
    """A path that leads outside, or to nothing that is one."""
    tool = random.choice(list(PATHS))
    name = random.choice(PATHS[tool])
    place = random.choice(_OUTSIDE)
    if tool == "list_runs" and place in _EMPTY:
        place = ".."
    if random.random() < 0.3:
        place = "./" * random.randrange(40) + "../" * random.randrange(1, 40) + place.lstrip("/")
    if name == "cluster" and random.random() < 0.3:
        place = f"dump.json,{place}"
    return tool, {**NEEDED[tool], name: ["dump.json", place] if name == "runs" else place}


def _type(random: Random) -> tuple[str, Arguments]:
    """A value of a type that its argument has not."""
    tool = random.choice(list(PATHS))
    name = random.choice(PATHS[tool])
    wrong = [each for each in _NOT_TEXTS if each is not None]
    if name == "runs":
        wrong = [7, True, {}, [7], [[]], [None], {"0": "dump.json"}]
    return tool, {**NEEDED[tool], name: random.choice(wrong)}


def _lacking(random: Random) -> tuple[str, Arguments]:
    """No tool of that name, or an argument too few."""
    if random.random() < 0.3:
        return random.choice(["", "nothing", "simulate ", "__init__", "../simulate", "\0", "x" * 5000]), {}
    tool = random.choice([tool for tool in NEEDED if NEEDED[tool]])
    arguments = dict(NEEDED[tool])
    del arguments[next(iter(arguments))]
    return tool, arguments


def _size(random: Random) -> tuple[str, Arguments]:
    """Something that is much too long, or too deep."""
    length = random.choice([5_000, 100_000, 1_000_000, 2_500_000])
    choice = random.randrange(5)
    if choice == 0:
        return "simulate", {"cluster": "x" * length}
    if choice == 1:
        return "simulate", {"cluster": "dump.json,".ljust(length, ",")}
    if choice == 2:
        return "compare", {"runs": ["x"] * (length // 100)}
    if choice == 3:
        return "simulate", {"cluster": "dump.json", "jobs": [{"kind": "x" * length}]}
    deep: Any = {}
    for _ in range(random.choice([10, 20, 40])):
        deep = {"a": [deep]}
    return "simulate", {"cluster": "dump.json", "jobs": [{**job(), "kind": deep}]}


def _manifest(random: Random) -> tuple[str, Arguments]:
    """A job that is none."""
    broken: list[Any] = [
        {"kind": "Secret"},
        {},
        {"kind": None},
        {"kind": ["Job"]},
        {**job(), "apiVersion": "batch.volcano.sh/v1alpha1"},
        {**job(), "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "../q"}}},
        {**job(), "spec": random.choice([None, [], "x", 7, {}])},
        job(template=random.choice([None, [], {}, {"spec": []}, {"spec": {"containers": {}}}])),
        job(parallelism=random.choice(_NUMBERS), completions=None),
        {**job(replicas=10**9), "kind": "Deployment", "apiVersion": "apps/v1"},
        {
            **job(components=[{"template": {}, "podSets": [{"path": "template" + ".a" * 500}]}]),
            "kind": "AppWrapper",
            "apiVersion": "workload.codeflare.dev/v1beta2",
        },
    ]
    requests = {random.choice([GPU, "cpu", "memory", "", "\0"]): random.choice(_AMOUNTS)}
    if next(iter(requests.values())) not in ("0x10", 1.5, "NaN"):
        container = {"name": "c", "resources": {"requests": {**requests, "pods/": "x"}}}
        broken.append(job(template={"spec": {"containers": [container]}}))
    return "simulate", {"cluster": "dump.json", "jobs": [random.choice(broken)]}


def _patch(random: Random) -> tuple[str, Arguments]:
    """A patch of what is not there, or cannot be patched."""
    broken = random.choice(
        [
            {"kind": "Nothing"},
            {},
            {"kind": "ClusterQueue"},
            {"kind": "ClusterQueue", "metadata": {"name": "../q"}, "spec": {"cohort": 7}},
            {"kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": {"stopPolicy": "Sometimes"}},
            {"kind": "Secret", "metadata": {"name": "s"}},
            {"kind": "Node", "metadata": {"name": "n0"}, "status": {"allocatable": {"cpu": "many"}}},
        ]
    )
    return "simulate", {"cluster": "dump.json", "patch": [broken]}


def _option(random: Random) -> tuple[str, Arguments]:
    """A number or a name beyond all bounds."""
    choice = random.randrange(4)
    if choice == 0:
        return "simulate", {
            "cluster": "dump.json",
            "plugin": random.choice(["nobody", " ", "../x", "os", "\0"]),
        }
    if choice == 1:
        return "forecast", {"cluster": "dump.json", "futures": random.choice([-1, 0, 201, 10**9, 10**40])}
    if choice == 2:
        wrong = random.choice(["", "-1d", "never", "1e9", "\0", "9" * 400 + "d"])
        return "forecast", {"cluster": "dump.json", "horizon": wrong}
    return "explain", {"run": "dump.json", "job": random.choice(["", "x" * 9999, "\0"])}


KINDS: Mapping[str, tuple[Callable[[Random], tuple[str, Arguments]], int]] = {
    "path": (_path, 30),
    "type": (_type, 20),
    "lacking": (_lacking, 10),
    "size": (_size, 10),
    "manifest": (_manifest, 15),
    "patch": (_patch, 8),
    "option": (_option, 7),
}
"""What is hostile -> what makes one of a random number, and how often it comes, in parts of 100."""
