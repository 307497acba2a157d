"""Find out what each engine can use on this machine, what it lacks, and the one command that installs that."""
