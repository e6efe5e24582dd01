"""What the trials of a run say."""
