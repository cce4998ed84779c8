"""Defines the built-in sections with their text, tables and charts."""
