"""Programs of the user's inside an emulated host, where they meet the experiment's path."""
