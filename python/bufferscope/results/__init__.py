"""The runs of an experiment together: how they differ, their frames, and the expectations that they are held to."""
