"""Models that schedulers are made of: quotas, evictions, and kube-scheduler part by part.

A model knows only its subject, and nothing of traces, clocks or tables. Policies combine models; no model
acts by itself.
"""
