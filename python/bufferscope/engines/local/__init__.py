"""Own queues of this machine: what its kernel has, and settings that can be changed and restored."""
