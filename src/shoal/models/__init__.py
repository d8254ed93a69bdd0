"""Models of what a release promises: how many samples, how much is known of a share."""
