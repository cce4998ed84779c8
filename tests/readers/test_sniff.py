"""How formats are known by the first bytes of a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.readers.sniff import MARK, first_line, has_columns, names_columns

HEAD = MARK + b'\r\n "a", b ,c\n1,2,3\n'


def test_a_mark_and_blank_lines_before_the_header_do_not_count() -> None:
    """The first line is the first that says something."""
    assert first_line(HEAD) == b'"a", b ,c'


def test_a_header_is_known_by_its_columns_in_any_order() -> None:
    """More columns do not matter, missing ones do; quotes and blanks are no part of a name."""
    assert has_columns(HEAD, ("c", "a"))
    assert not has_columns(HEAD, ("a", "d"))
    assert not has_columns(b"", ("a",))
    assert names_columns("a", "b")(Path("x.csv"), HEAD)


def test_sniffing_needs_no_polars() -> None:
    """Every reader's function is imported when plugins are listed."""
    script = "import sys, harness.readers.sniff; assert 'polars' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
