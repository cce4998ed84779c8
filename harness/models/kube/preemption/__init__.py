"""Models default preemption, which finds a node and victims for a pod without a feasible node."""
