"""A file for each library: functions from a workload to coefficients (T, d) and intercepts (T,)."""
