"""Where records come from: one system per file, all with the contract of shoal.sources.base."""
