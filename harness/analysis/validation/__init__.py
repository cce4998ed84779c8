"""Validates a simulation: compares a record of what happened with a replay of the same jobs, job by job."""

from harness.analysis.validation.validation import Validation

__all__ = ["Validation"]
