"""Carrying out runs: the plan, executors in threads or on a cluster, how results are laid out, and stepping."""
