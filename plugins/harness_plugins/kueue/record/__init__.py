"""The figures behind decisions, for the record."""
