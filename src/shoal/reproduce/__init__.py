"""Studies: the papers' experiments, repeated on their data or on synthetic data like it."""
