"""The manifests of elastic quotas: reading them, what is said of their fields, rules between them."""
