"""Implements Kueue's rules. Each module covers one concept of the Kueue documentation."""
