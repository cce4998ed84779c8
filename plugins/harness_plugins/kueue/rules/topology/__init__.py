"""Topology-aware scheduling: the topology domains in which the pods of a workload are placed.

Source: KEP 2724 of Kueue, and recorded answers of its placement. Each step has a module, in this order:
`request` has the request of a pod set, `tree` the domains, and `capacity` the pods that domains could take.
`search` chooses among the domains, and `placement` places the pod sets of a workload one by one.
"""
