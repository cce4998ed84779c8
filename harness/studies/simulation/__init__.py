"""Answers whether a job would start now, which jobs it would displace, and which changes would help."""
