"""Policies become running pipelines; nobody else holds two rooms."""

from shoal.pipeline.pipeline import Pipeline

__all__ = ["Pipeline"]
