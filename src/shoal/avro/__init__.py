"""Avro without files: types, schemas, and the registry that schemas are kept in."""
