"""The packets of runs as pcapng files, for Wireshark."""
