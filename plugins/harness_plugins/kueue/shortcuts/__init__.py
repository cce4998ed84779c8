"""Shortcuts that avoid repeated work. All decisions are the same without them, but take longer."""
