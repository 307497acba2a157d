"""Other tools and their formats: imports, exports, and captures of packets."""
