"""posse beside other bandit libraries, on one workload: `python -m benchmarks.peers --help`."""
