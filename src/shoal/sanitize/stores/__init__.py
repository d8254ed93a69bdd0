"""The stores of the sanitization process: one small interface, one database per file."""
