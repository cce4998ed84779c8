"""Read-only clients of a cluster's API server and of Prometheus."""
