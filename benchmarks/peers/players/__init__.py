"""One file per library: how it is made to play the workload."""
