"""Topology-aware scheduling: in which domains of a topology the pods of a workload are placed.

Source: KEP 2724 of Kueue, and what its placement answered to recorded questions. Each step has a module, in
this order. `request` has what a pod set asks for, `tree` the domains, and `capacity` what they could take.
`search` chooses among them, and `placement` takes the pod sets of a workload one after the other.
"""
