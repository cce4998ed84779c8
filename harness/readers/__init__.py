"""Shared parts of trace readers: files and lines, tables, cells, gangs, names, recognition of formats.

Each module is imported by itself. `sniff` does not import polars, the others do.
"""
