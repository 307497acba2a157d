"""The kernel of this machine, in network namespaces."""
