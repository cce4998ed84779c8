"""Kubernetes manifests -> an immutable `Cluster`."""
