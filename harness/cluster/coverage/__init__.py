"""Says how a replay treats every field of every kind that harness reads.

Each module contains one family of kinds.
"""
