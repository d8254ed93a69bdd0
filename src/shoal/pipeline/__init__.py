"""Runs policies: the only layer that connects sources, methods and sinks."""

from shoal.pipeline.pipeline import Pipeline

__all__ = ["Pipeline"]
