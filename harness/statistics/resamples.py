"""What is drawn for bootstraps: the same for everything that has so many values, on every machine."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 1000
SEED = 1


@lru_cache(maxsize=8)
def times(count: int, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """How often each of so many values is drawn in each of so many resamples."""
    import numpy as np

    draw = random.Random(SEED).random  # noqa: S311 - drawn for statistics, alike in every version
    drawn = np.array([int(draw() * count) for _ in range(resamples * count)]).reshape(resamples, count)
    cells = (drawn + count * np.arange(resamples)[:, None]).ravel()
    found = np.bincount(cells, minlength=resamples * count).reshape(resamples, count)
    return found.astype(np.float64)
