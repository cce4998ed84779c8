"""Statistics of a difference between two runs: intervals, tests, and corrections for many tests."""
