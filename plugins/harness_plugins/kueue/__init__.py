"""Kueue's scheduler: ClusterQueues and cohorts, flavors, the admission cycle, and both kinds of preemption."""
