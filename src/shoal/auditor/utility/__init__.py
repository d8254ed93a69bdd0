"""What a release is still good for: counts, distributions, correlations, predictions."""
