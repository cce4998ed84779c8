"""Writes files and folders that are either complete or absent, however the writing process ends."""
