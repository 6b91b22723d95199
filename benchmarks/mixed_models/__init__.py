"""posse beside mixed models and regressions per task: `python -m benchmarks.mixed_models --help`."""
