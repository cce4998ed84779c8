"""Default preemption: the pods that a pod without a feasible node may preempt, and their node."""
