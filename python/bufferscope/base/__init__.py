"""What every other layer may use: errors, numbers as text, files that a user names, suggestions, this machine."""
