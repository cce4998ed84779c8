"""Reads amounts as Slurm writes them: trackable resources (TRES), and the memory that a job requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from harness.base.units import INT64_MAX, slurm_memory

MIB = 2**20
_COUNT = re.compile(r"[0-9]{1,18}")
_GPU = "gres/gpu"
_OF_A_JOB = ("gres/", "license/", "bb/")
_MOST = {"cpu": 10**9, "node": 10**6, _GPU: 10**6}
"""Upper limits. A larger number is a mistake, because no machine has so many, and it might overflow later."""


@dataclass(frozen=True, slots=True)
class Tres:
    """The quantities that a whole job requests or uses. A quantity is None if it is not given.

    Attributes:
        cpus: the CPUs as Slurm counts them. If a core has several threads, each thread is a CPU.
        memory: the memory in bytes.
        gpus: the number of GPUs on all nodes.
        models: the named types of GPUs.
        others: other named devices and licences. A trace does not request them.
        rounded: True if the printed memory was rounded to two decimals.
    """

    cpus: int | None = None
    memory: int | None = None
    nodes: int | None = None
    gpus: int | None = None
    models: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    rounded: bool = False

    def __bool__(self) -> bool:
        """Returns True if any amount is given."""
        return self != _NOTHING


_NOTHING = Tres()


@lru_cache(maxsize=1 << 16)
def tres_of_text(text: str) -> Tres:
    """Returns the TRES of a cell such as `billing=4,cpu=2,gres/gpu:a100=1,gres/gpu=1,mem=4G,node=1`.

    Raises:
        ValueError: the text has another form. The message says what is wrong.
    """
    counts: dict[str, int] = {}
    rounded = False
    for part in text.split(",") if text else ():
        name, equals, amount = part.partition("=")
        if not (name and equals):
            raise ValueError("is not a list such as cpu=4,mem=8G,node=1")
        if name == "mem":
            counts[name], rounded = slurm_memory(amount)
        elif name in ("cpu", "node") or _is_gpu(name):
            counts[name] = _count(name, amount)
        elif amount not in ("", "0"):
            counts[name] = 1
    return tres_of_counts(counts, rounded=rounded)


def tres_of_counts(counts: dict[str, int], *, rounded: bool = False) -> Tres:
    """Returns the TRES for these amounts by name, with memory in bytes.

    GPUs occur both as a total (`gres/gpu`) and by type (`gres/gpu:TYPE`). The amounts by type are therefore
    used only if the total is missing.
    """
    typed = {name: amount for name, amount in counts.items() if name.startswith(f"{_GPU}:")}
    gpus = counts.get(_GPU, sum(typed.values()) if typed else None)
    return Tres(
        counts.get("cpu"),
        counts.get("mem"),
        counts.get("node"),
        gpus,
        tuple(sorted(name.removeprefix(f"{_GPU}:") for name, amount in typed.items() if amount)),
        tuple(
            sorted(
                name
                for name, amount in counts.items()
                if amount and name.startswith(_OF_A_JOB) and not _is_gpu(name)
            )
        ),
        rounded,
    )


def _is_gpu(name: str) -> bool:
    return name == _GPU or name.startswith(f"{_GPU}:")


def _count(name: str, text: str) -> int:
    most = next(limit for start, limit in _MOST.items() if name.startswith(start))
    if not _COUNT.fullmatch(text) or int(text) > most:
        raise ValueError(f"{name} is not a whole number from 0 to {most:,}")
    return int(text)


def requested_memory(text: str, cpus: int | None, nodes: int | None) -> tuple[int | None, bool]:
    """Returns the memory of a whole job in bytes, from the column `ReqMem`.

    Older versions append `c` for memory per CPU, or `n` for memory per node.

    Raises:
        ValueError: the text is not an amount of memory.
    """
    if text in ("", "0", "?"):
        return None, False
    if text[-1] not in "cn":
        return slurm_memory(text)
    each, rounded = slurm_memory(text[:-1])
    count = cpus if text[-1] == "c" else nodes
    if count is not None and each * count > INT64_MAX // 2:
        raise ValueError("is more memory than 64 bits can count")
    return (None, False) if count is None else (each * count, rounded)
