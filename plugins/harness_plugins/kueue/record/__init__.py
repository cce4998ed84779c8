"""Collects the figures behind decisions for the record."""
