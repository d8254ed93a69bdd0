"""Where bytes go: one system a file. A sink knows nothing of formats."""
