"""Shortcuts, which avoid repeated work. Without them every decision is the same, only slower."""
