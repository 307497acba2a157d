"""What removes the queue that a live measurement found: where, with which settings, and what to type."""
