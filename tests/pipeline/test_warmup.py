"""Compiling ahead of time: what is run through the methods, and the command."""

from __future__ import annotations

import pytest

from shoal.methods.registry import METHODS
from shoal.pipeline import warmup
from tests.e2e.scene import shoal


@pytest.mark.parametrize("method", METHODS)
def test_warming_up_publishes_something(method, monkeypatch):
    made = []
    make = warmup._stream_method
    monkeypatch.setattr(warmup, "_stream_method", lambda name: made.append(make(name)) or made[-1])
    warmup.warm(method)
    assert all(one.counts["released"] > 0 for one in made)
    assert len(made) == 2 * METHODS[method].is_stream


def test_the_command_compiles_the_named_methods(monkeypatch):
    asked = []
    monkeypatch.setattr(warmup, "warm_all", lambda names: asked.append(names) or iter(names))
    ended = shoal("warmup", "fads", "z-anonymity", "fads")
    assert (ended.code, ended.out) == (0, b"ready: fads, z-anonymity\n")
    assert shoal("warmup").code == 0
    assert asked == [["fads", "z-anonymity"], list(METHODS)]


def test_the_command_names_the_methods_there_are():
    ended = shoal("warmup", "fads", "fast-and-loose")
    assert ended.code == 2
    assert "'fast-and-loose' is not a method" in ended.err
    assert "least-loss" in ended.err


def test_all_cores_together_warm_up_every_method_once():
    names = ["k^m", "k^m-apriori", "z-anonymity"]
    assert sorted(warmup.warm_all(names)) == names
