"""Synthetic traces: from a specification, or fitted to a recorded trace; seeded, and in bounded memory."""
