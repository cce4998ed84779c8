"""Implements previews, which are proposed rules that Kueue does not have, and which are off by default."""
