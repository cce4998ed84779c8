"""Topology-aware scheduling: the topology domains in which the pods of a workload are placed.

Source: KEP 2724 of Kueue, and the answers of its placement to recorded questions. Each step has a module, in
this order. `request` has the request of a pod set, `tree` the domains, and `capacity` what they could take.
`search` chooses among them, and `placement` takes the pod sets of a workload one after the other.
"""
