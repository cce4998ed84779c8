"""Models the components of kube-scheduler: pods, nodes, the queue, gangs, the scheduler."""
