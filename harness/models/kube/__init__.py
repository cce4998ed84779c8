"""kube-scheduler part by part: pods, nodes and what is on them, the queue, gangs, the scheduler."""
