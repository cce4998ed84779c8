"""Avoids repeated work with shortcuts. Without them, all decisions are the same but take longer."""
