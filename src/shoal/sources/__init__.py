"""Where bytes come from: one system a file. A source knows nothing of formats."""
