"""Which column says whose row it is."""
