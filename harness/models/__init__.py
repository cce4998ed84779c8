"""Models that schedulers are made of: quotas, evictions, and kube-scheduler part by part.

A model knows what it is a model of and nothing of traces, clocks or tables. Policies put models together;
none has a life of its own.
"""
