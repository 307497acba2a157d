"""Statistics of repetitions: means with their confidence intervals, and comparisons of two samples."""
