"""Columns on their way to the files."""

from __future__ import annotations

import subprocess
import sys
from array import array

from harness.recording.parquet import as_series


def test_machine_integers_become_a_column() -> None:
    """Of each width that is kept."""
    for code, name in (("q", "Int64"), ("i", "Int32"), ("b", "Int8")):
        column = as_series(array(code, [1, -1, 0]))
        assert (str(column.dtype), column.to_list()) == (name, [1, -1, 0])
    assert as_series(array("q")).to_list() == []


def test_a_column_does_not_import_the_functions_of_pyarrow() -> None:
    """They take longer than a short replay."""
    code = (
        "import sys; from array import array; from harness.recording.parquet import as_series; "
        "as_series(array('q', [1])); sys.exit('pyarrow.compute' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
