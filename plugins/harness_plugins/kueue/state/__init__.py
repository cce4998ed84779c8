"""The state: holders of quota, waiting workloads, usage of LocalQueues, and room in topologies."""
