"""What the trials of a run say: `summarise(run)` once, and everybody reads the Summary."""
