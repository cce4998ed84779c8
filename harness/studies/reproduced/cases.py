"""The published results that `harness reproduce` knows."""

from __future__ import annotations

from collections.abc import Mapping

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.studies.reproduced import accasim, fair_sharing, logs, preemption_design
from harness.studies.reproduced.case import Case

_TSAFRIR = "Tsafrir, Etsion and Feitelson, IEEE TPDS 18 (2007)"

CASES: Mapping[str, Case] = {
    case.name: case
    for case in (
        Case(
            "accasim-hpc2n",
            "first come, first served on HPC2N's log, 240 processors",
            "AccaSim 1.1.3 (FIFO, first fit), its result file",
            accasim.rows,
        ),
        Case(
            "kubernetes-preemption",
            "examples 1 to 4 of Kubernetes' design of preemption",
            "kubernetes/community 43ce57ac, design-proposals/scheduling/pod-preemption.md",
            preemption_design.rows,
        ),
        Case(
            "kueue-fair-sharing",
            "Kueue's documented examples of fair sharing",
            "kubernetes-sigs/kueue ff69552e79, keps/1714-fair-sharing and docs/concepts",
            fair_sharing.rows,
        ),
        Case(
            "easy-ctc",
            "EASY on CTC SP2, 338 processors",
            "mean flow time and slowdown of 77,199 jobs",
            logs.ctc,
            (logs.CTC,),
        ),
        Case(
            "easy-blue",
            "EASY on SDSC Blue Horizon, 1,152 processors",
            "nowhere with its conventions",
            logs.blue,
            (logs.BLUE,),
        ),
        Case(
            "last-two-ctc", "users' last two run times on CTC SP2", _TSAFRIR, logs.last_two_ctc, (logs.CTC,)
        ),
        Case(
            "last-two-blue",
            "users' last two run times on SDSC Blue Horizon",
            _TSAFRIR,
            logs.last_two_blue,
            (logs.BLUE,),
        ),
    )
}
"""Name -> published result; those that need no files come first."""


def case_of(name: str) -> Case:
    """A published result by its name.

    Raises:
        OptionError: there is none of that name.
    """
    if name not in CASES:
        raise OptionError(f"there is no published result {name!r}", hint=did_you_mean(name, CASES))
    return CASES[name]
