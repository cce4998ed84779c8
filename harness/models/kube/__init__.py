"""Models the components of kube-scheduler, such as pods, nodes, the queue, gangs and the scheduler."""
