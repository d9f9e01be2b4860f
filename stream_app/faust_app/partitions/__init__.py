"""The partitions that are assigned to this worker: a task for each."""
