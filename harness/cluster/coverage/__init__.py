"""States how a replay treats every field of every kind that harness reads (the coverage of the kind).

Each module contains the coverage of a few related kinds.
"""
