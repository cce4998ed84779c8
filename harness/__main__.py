"""Runs the command `harness` for `python -m harness`."""

from harness.cli import main

main()
