"""kube-scheduler: pods one by one onto nodes, with default preemption."""
