"""Implements previews, which are proposed rules that Kueue does not have. They are off by default."""
