"""Servers that are asked for what happened, and only read: a cluster's API server, and Prometheus."""
