"""One file for each kind of device that can be set."""
