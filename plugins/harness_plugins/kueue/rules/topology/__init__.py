"""Topology-aware scheduling: in which domains of a topology the pods of a workload are placed.

Source: KEP 2724 of Kueue, and what its placement answered to recorded questions. One step a module, in this
order: `request` what a pod set asks for, `tree` the domains, `capacity` what they could take, `search` which
of them are chosen, `placement` the pod sets of a workload one after the other.
"""
