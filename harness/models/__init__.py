"""Models of scheduler components, such as quotas, evictions, and the parts of kube-scheduler.

Models do not depend on traces, clocks or tables, and do nothing on their own. Policies combine them.
"""
