"""Shared parts of trace readers: files and lines, tables, cells, gangs, names, recognition of formats.

Callers import each module separately. Only `sniff` does not import polars.
"""
