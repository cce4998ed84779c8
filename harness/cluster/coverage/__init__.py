"""The coverage of manifests, as data: how a replay treats every field of every kind that harness reads.

Each module holds one family of kinds.
"""
