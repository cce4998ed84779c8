"""The state: holders of quota, waiting workloads, usage of LocalQueues, and capacity of topologies."""
