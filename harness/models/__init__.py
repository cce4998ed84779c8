"""Models of the parts of schedulers: quotas, evictions, and the components of kube-scheduler.

A model knows its subject, but no traces, clocks or tables. Policies combine models; no model acts by itself.
"""
