"""Read-only clients of servers that know what happened: a cluster's API server, and Prometheus."""
