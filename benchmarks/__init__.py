"""Measurements, as ratios taken in one run: `python -m benchmarks --help`."""
