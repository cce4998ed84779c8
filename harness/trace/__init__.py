"""Reads job traces, validates them against their schema, and converts them to jobs."""
