"""Default preemption: whom a pod that fits nowhere may preempt, and on which node."""
