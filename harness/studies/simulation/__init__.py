"""Answers questions about an instant: would this job start now, at whose cost, and what would help."""
