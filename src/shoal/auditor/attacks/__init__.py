"""Simulated attacks on a release: attackers see the release, the truth says whether they are right."""
