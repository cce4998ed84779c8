"""Topology-aware scheduling, which chooses the topology domains for the pods of a workload.

The rules follow KEP 2724 of Kueue and recorded results of its placement. Each step has its own module:

- `request` interprets the topology request of a pod set.
- `tree` has the topology domains.
- `capacity` counts how many pods each domain could take.
- `search` chooses among the domains.
- `placement` places the pod sets of a workload one by one.
- `replacement` does so for the pods of a failed node.
"""
