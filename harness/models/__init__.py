"""Models components of schedulers, such as quotas, evictions, and the parts of kube-scheduler.

Models don't depend on traces, clocks or tables. Policies combine models and call them.
"""
