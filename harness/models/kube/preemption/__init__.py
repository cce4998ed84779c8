"""Default preemption: the pods that a pod without a fitting node may preempt, and on which node."""
