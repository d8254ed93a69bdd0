"""The TOML file that says what to read, how to protect it and where to write it."""

from shoal.policy.loading import load_policy, parse_policy
from shoal.policy.policy import Policy

__all__ = ["Policy", "load_policy", "parse_policy"]
