"""Where rows go: one system per file, all with the contract of shoal.sinks.base."""
