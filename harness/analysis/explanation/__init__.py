"""The history of a job, of a queue, or of an instant, in sentences that use only what a run recorded."""
