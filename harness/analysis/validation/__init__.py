"""What a simulation is worth: a record of what happened against a replay of the same jobs, job by job."""

from harness.analysis.validation.validation import Validation

__all__ = ["Validation"]
