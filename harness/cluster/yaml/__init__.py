"""Reads files, documents and fields of YAML in the same way as Kubernetes."""
