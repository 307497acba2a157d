"""Run the user's own programs on an emulated host, so that their packets cross the experiment's network."""
