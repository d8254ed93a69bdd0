"""Tests that start Spark; `make test-spark` runs them."""
