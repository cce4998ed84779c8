"""The published results that `harness reproduce` can replay."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.studies.reproduced import accasim, fair_sharing, logs, openb, preemption_design
from harness.studies.reproduced.case import Case

_PREDICTSIM = "jad-darrous/predictsim 174c453, experiments/data"
_TSAFRIR = "Tsafrir, Etsion and Feitelson, IEEE TPDS 18 (2007)"
_SHAKING = "Tsafrir, Ouaknine and Feitelson, MASCOTS (2007)"

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
            "kubernetes-sigs/kueue ff69552e79, keps/1714 and 4136 (fair sharing), docs/concepts",
            fair_sharing.rows,
        ),
        Case(
            "fgd-openb",
            "FGD packs the 17 pod lists of openb, ten seeds each",
            "hkust-adsl/kubernetes-scheduler-simulator 8f3d641, expected_results",
            openb.fgd,
            openb.SOURCES,
        ),
        *(
            Case(f"{kind}-{name}", f"{about} on {machine}", published, partial(replay, log=log), (log,))
            for kind, about, published, replay in (
                ("easy", "EASY by requested times", _PREDICTSIM, logs.by_requests),
                (
                    "last-two",
                    "EASY by predictions from users' last two run times",
                    f"{_PREDICTSIM}; {_TSAFRIR}",
                    logs.by_predictions,
                ),
                ("shaken", "EASY on ten twins with shifted arrivals", _SHAKING, logs.shaken),
            )
            for name, machine, log in (
                ("ctc", "CTC SP2, 338 processors", logs.CTC),
                ("blue", "SDSC Blue Horizon, 1,152 processors", logs.BLUE),
            )
        ),
    )
}
"""Maps names to published results. Results that need no files come first."""


def case_of(name: str) -> Case:
    """Returns the published result with this name.

    Raises:
        OptionError: there is no published result with this name.
    """
    if name not in CASES:
        raise OptionError(f"there is no published result {name!r}", hint=did_you_mean(name, CASES))
    return CASES[name]
