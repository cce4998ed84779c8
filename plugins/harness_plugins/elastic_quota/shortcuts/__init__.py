"""Shortcuts that avoid repeated work. Without them, all decisions are the same but take longer."""
