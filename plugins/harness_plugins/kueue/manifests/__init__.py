"""Reads the workloads that are present when a replay starts from a cluster's Workload manifests."""
