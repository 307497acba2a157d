"""A model of a measured line: an experiment that behaves as the measurement did, as far as the data show it."""
