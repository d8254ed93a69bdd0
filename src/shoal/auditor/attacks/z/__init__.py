"""Attacks on z-anonymity: released sets, single events, trajectories, pseudonyms of the next epoch, labels."""
