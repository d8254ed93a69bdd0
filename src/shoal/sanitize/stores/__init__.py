"""Where the sanitization process keeps its records: one small interface, one database a file."""
