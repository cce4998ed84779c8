"""Explains the history of a job, of a queue, or of a moment, using only what a run recorded."""
