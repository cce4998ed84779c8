"""Models kube-scheduler part by part: pods, nodes and the pods on them, the queue, gangs, the scheduler."""
