"""Tables of live systems: what they have in common, one class per system, secrets, and checks across tables."""
