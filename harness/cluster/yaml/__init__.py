"""YAML as Kubernetes reads it: files, documents and fields."""
