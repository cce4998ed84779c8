"""What happened to a job, a queue, or at an instant, in sentences that say only what a run recorded."""
