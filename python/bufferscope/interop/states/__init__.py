"""The state of TCP in runs as qlog files."""
