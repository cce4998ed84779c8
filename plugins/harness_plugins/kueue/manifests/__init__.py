"""Reads the workloads that are present when a replay begins, from a cluster's Workload manifests."""
