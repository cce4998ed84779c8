"""Asks about one instant: would this job start now, whom would it preempt, and what would help."""
