"""Running an experiment: cells, workers, and the folder they end in."""
