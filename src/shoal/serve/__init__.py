"""The live page of a run, the HTTP source, and metrics: a small web server for which the run never waits.

The run stays in the main thread and keeps its signals; the server has a thread of its own. `RunTap` in `tap.py`
observes the run and copies counts; everything that costs is computed in the background from bounded samples.
"""
