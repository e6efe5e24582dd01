"""Pictures of a run, one file per figure."""
