"""What a cluster's Workload manifests say of those that are there when a replay begins."""
