"""Explains the history of a job or queue, or the state at a moment, from the records of a run."""
