"""Shortcuts: work that need not be repeated. Every decision is the same without them, only slower."""
