"""What errors tell of themselves wherever they are seen."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from harness.base.errors import HarnessError


def test_a_traceback_ends_with_what_to_do(write_trace: Callable[..., Path]) -> None:
    """Of a script or a notebook that catches nothing it is all that is seen; also from another process."""
    with pytest.raises(HarnessError) as caught:
        harness.replay(write_trace({}), plugin="nonne")
    error = caught.value
    assert error.hint is not None
    for seen in (error, pickle.loads(pickle.dumps(error))):
        told = traceback.format_exception_only(seen)
        assert told[-1] == f"Hint: {error.hint}\n"
        assert "".join(told).count(error.hint) == 1


def test_without_a_hint_it_ends_with_what_happened() -> None:
    """No empty line is added."""
    told = traceback.format_exception_only(HarnessError("it happened"))
    assert told == ["harness.base.errors.HarnessError: it happened\n"]
