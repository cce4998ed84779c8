"""Reads Kubernetes manifests into an immutable `Cluster`."""
