"""Writes the figures behind decisions."""
