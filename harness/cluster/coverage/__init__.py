"""The coverage of manifests: how a replay treats every field of every kind that is read, as data.

Each module holds one family of kinds.
"""
