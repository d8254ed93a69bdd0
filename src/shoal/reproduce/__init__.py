"""Studies: the papers' experiments, run again on their data or on an imitation of it."""
