"""Reads and checks the manifests of elastic quotas, and notes fields without an effect."""
