"""The manifests of elastic quotas: how they are read, notes on their fields, and rules between them."""
