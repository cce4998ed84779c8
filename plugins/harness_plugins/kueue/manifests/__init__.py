"""The data in a cluster's Workload manifests about the workloads present when a replay begins."""
