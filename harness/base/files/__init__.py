"""Writes files and folders that are either complete or absent, no matter how the writing process ends."""
