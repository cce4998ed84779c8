"""What is set in Python on a class or a function counts, and what cannot be compared makes it unknown."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.plugins.registries import PolicySpec
from harness.runs.identity import Code, code_of_policy
from harness_plugins.recorded import Recorded

MODULE = """
import enum
import functools
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple
import logging
import re


class Knob:
    turned = 1

    def of(self, job):
        return self.turned


@dataclass(frozen=True)
class Weights:
    n: int = 1


class Kind(enum.Enum):
    FIRST = "first"
    LAST = "last"


class Pair(NamedTuple):
    a: int
    b: int = 2


def logged(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    return inner


class Acme:
    amount = 1
    limits = [1, {"a": 2}]
    knob = Knob
    kind = Kind.FIRST
    names = {"a", "b", "c"}
    table = {("a", 1): Fraction(1, 3)}
    pattern = re.compile("a+")
    log = logging.getLogger("acme")
    path = Path("a")
    recent = deque([1], maxlen=3)
    least = staticmethod(min)
    bound = functools.partial(max, 1)

    def __init__(self, cluster, view, options):
        pass

    def get(self, job):
        return job.name in {"x", "y", "z"}

    def other(self, job):
        return 2

    @property
    def first(self):
        return 1

    @functools.cached_property
    def second(self):
        return 2

    @functools.lru_cache
    def third(self):
        return 3

    @logged
    def fourth(self):
        return super().__init__

    def __len__(self):
        return 1

    @classmethod
    def fifth(cls, n=1, *, m=[1]):
        return 1


def other(self, job=None):
    return 3


def make(cluster, view, options, n=[1], *, m=1):
    return Acme(cluster, view, options)


make.limit = 1
Acme.itself = Acme
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module with a policy, imported anew."""
    (tmp_path / "mine_for_tests.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield importlib.import_module("mine_for_tests")
    del sys.modules["mine_for_tests"]


class OfRecorded(Recorded):
    """A built-in policy that is a class, as others build on it."""


def code_of(policy: Any) -> Code:
    return code_of_policy(PolicySpec("acme", policy, "", (), False))


ON_A_CLASS = [
    "Acme.amount = 2",
    "Acme.amount = True",
    "Acme.limits[0] = 5",
    "Acme.limits[1]['a'] = 5",
    "Acme.knob = Weights",
    "Acme.kind = Kind.LAST",
    "Acme.names = {'a', 'b', 'd'}",
    "Acme.table = {('a', 1): Fraction(1, 4)}",
    "Acme.pattern = re.compile('b+')",
    "Acme.log = logging.getLogger('other')",
    "Acme.path = Path('b')",
    "Acme.recent.append(2)",
    "Acme.least = staticmethod(max)",
    "Acme.bound = functools.partial(max, 2)",
    "Acme.get = other",
    "Acme.get = Acme.other",
    "Acme.__len__ = other",
    "Acme.__iter__ = other",
    "Acme.first = property(other)",
    "Acme.second = functools.cached_property(other)",
    "Acme.third = functools.lru_cache(other)",
    "Acme.fourth = logged(other)",
    "Acme.get.limit = 2",
    "Acme.fifth.__func__.__defaults__ = (2,)",
    "Acme.fifth.__func__.__kwdefaults__['m'][0] = 2",
    "del Acme.knob",
]
ON_A_FUNCTION = [
    "make.limit = 5",
    "make.__defaults__[0].append(2)",
    "make.__defaults__ = ([2],)",
    "make.__kwdefaults__['m'] = 2",
]


def test_what_a_policy_has_can_be_told(mine: Any) -> None:
    """All that such a class and such a function have is compared, so that their runs are answers."""
    assert code_of(mine.Acme).unknown == ""
    assert code_of(mine.make).unknown == ""
    assert code_of(mine.Acme) == code_of(mine.Acme)


@pytest.mark.parametrize(
    ("policy", "change"),
    [*(("Acme", change) for change in ON_A_CLASS), *(("make", change) for change in ON_A_FUNCTION)],
)
def test_what_is_set_makes_it_another_one(mine: Any, policy: str, change: str) -> None:
    """Whatever an attribute or a default holds, also where that is changed in place."""
    before = code_of(getattr(mine, policy))
    exec(change, vars(mine))
    after = code_of(getattr(mine, policy))
    assert (after.unknown, after.sha256 == before.sha256) == ("", False)


def test_what_was_changed_back_is_the_same_again(mine: Any) -> None:
    """Equal values count, not which of them it is, and not in which order they were set."""
    before = code_of(mine.Acme)
    mine.Acme.amount = 2
    mine.Acme.limits, mine.Acme.names = [1, {"a": 2}], {"c", "b", "a"}
    del mine.Acme.amount
    mine.Acme.amount = 1
    assert code_of(mine.Acme) == before


def deep(mine: Any) -> Any:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


def within_itself(mine: Any) -> Any:
    found: list[Any] = []
    found.append(found)
    return found


def of_no_file(mine: Any) -> Any:
    exec("def get(self, job): return 1", found := {"__name__": "elsewhere"})
    return property(found["get"])


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (lambda mine: threading.Lock(), "odd: a _thread.lock"),
        (lambda mine: (each for each in (1, 2)), "odd: a builtins.generator"),
        (lambda mine: weakref.ref(mine.Acme), "odd: a weakref.ReferenceType"),
        (lambda mine: [{"a": threading.Lock()}], "odd: a _thread.lock"),
        (lambda mine: mine.Knob(), "odd: a mine_for_tests.Knob"),
        (lambda mine: mine.Weights(), "odd: a mine_for_tests.Weights"),
        (lambda mine: mine.Pair(1), "odd: a mine_for_tests.Pair"),
        (lambda mine: mine.Knob().of, "odd: a mine_for_tests.Knob"),
        (deep, "odd: values that are nested too deeply"),
        (within_itself, "odd: values that are nested too deeply"),
        (lambda mine: lambda self: 1, "odd: it is not from mine_for_tests.py"),
        (of_no_file, "odd: it is not from mine_for_tests.py"),
    ],
)
def test_what_cannot_be_compared_makes_it_unknown(mine: Any, value: Callable[[Any], Any], told: str) -> None:
    """It is never taken for equal, and the attribute is named."""
    mine.Acme.odd = value(mine)
    code = code_of(mine.Acme)
    assert code.unknown.startswith(f"mine_for_tests.Acme has a value that cannot be compared: {told}")
    assert not code.changed


def test_what_a_notebook_defines_is_unknown(mine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells are found by their names, in a module that has no file."""
    monkeypatch.delattr(mine, "__file__")
    for each in (mine.Acme, mine.make):
        assert code_of(each).unknown == f"mine_for_tests.{each.__name__} is in no file"


def test_every_process_tells_the_same(mine: Any) -> None:
    """Neither where values are in memory nor the order of sets makes a difference."""
    script = (
        "import mine_for_tests as mine\n"
        "from harness.plugins.registries import PolicySpec\n"
        "from harness.runs.identity import code_of_policy\n"
        "for each in (mine.Acme, mine.make):\n"
        "    mine.Acme.more = frozenset({mine.Kind.FIRST, ('a', mine.Kind.LAST), mine.Acme})\n"
        "    print(code_of_policy(PolicySpec('acme', each, '', (), False)).sha256)\n"
    )
    mine.Acme.more = frozenset({mine.Kind.FIRST, ("a", mine.Kind.LAST), mine.Acme})
    expected = [code_of(mine.Acme).sha256, code_of(mine.make).sha256]
    path = os.pathsep.join([str(Path(mine.__file__).parent), *sys.path])
    for seed in ("0", "1"):
        ran = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.split() == expected


def test_a_class_of_a_built_in_one_is_known() -> None:
    """The attributes of what it inherits from our plugins are compared, too."""
    assert code_of(OfRecorded).unknown == ""


def test_a_changed_attribute_of_a_function_is_replayed(
    mine: Any, write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """The stored run of the earlier value is not the answer; of the same value it is."""
    (tmp_path / "policy_for_tests.py").write_text(
        "from policies import Greedy\n\n\n"
        "def make(cluster, view, options):\n"
        "    policy = Greedy(cluster, view, options)\n"
        "    if make.reverse:\n"
        "        policy.submit = lambda job, pods, now: policy.waiting.insert(0, job)\n"
        "    return policy\n\n\n"
        "make.reverse = False\n"
    )
    make: Any = importlib.import_module("policy_for_tests").make
    trace = write_trace(*({"duration": 5 + number} for number in range(3)))
    first = harness.replay(trace, plugin=make, output=tmp_path / "results")
    make.reverse = True
    second = harness.replay(trace, plugin=make, output=tmp_path / "results")
    make.reverse = False
    third = harness.replay(trace, plugin=make, output=tmp_path / "results")
    assert (first.stored, second.stored, third.stored) == (False, False, True)
    assert third.path == first.path != second.path
    del sys.modules["policy_for_tests"]
