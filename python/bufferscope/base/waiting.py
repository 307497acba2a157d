"""Waiting for threads so that Ctrl-C is noticed."""

PATIENCE_S = 0.2
"""The longest single wait: once polars is loaded, Ctrl-C does not interrupt a wait, and is noticed only after it."""
