"""Collects the reasons and numbers that the record shows for each decision."""
