"""YAML as Kubernetes reads it, the files it is in, and its fields."""
