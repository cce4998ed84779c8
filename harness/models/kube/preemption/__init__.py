"""Models default preemption.

It finds the pods that a pod without a feasible node can preempt, and their node.
"""
