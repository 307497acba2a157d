"""The embedded simulator."""
