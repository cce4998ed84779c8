"""Reads YAML in the same way as Kubernetes: files, documents and fields."""
