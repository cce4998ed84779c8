"""The manifests of elastic quotas: their reading, notes on their fields, and rules between quotas."""
