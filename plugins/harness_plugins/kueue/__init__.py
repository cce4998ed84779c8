"""Kueue's scheduler: queues and cohorts, flavors, the admission cycle, and both kinds of preemption."""
