"""What is: who holds which quota, who waits where, what LocalQueues used, what room is left in topologies."""
