"""What can be said of a difference between two runs: intervals, tests, and corrections for many of them."""
