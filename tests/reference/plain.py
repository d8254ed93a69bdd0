"""Kernels as plain Python functions: pieces cannot be called from outside once they are compiled."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType, SimpleNamespace
from unittest import mock

import numba

import shoal.kernels
from shoal.kernels import compiling

_SHARED = ("shoal.kernels", "shoal.kernels.compiling", "shoal.kernels.z", "shoal.kernels.tuples", "shoal.kernels.sets",
           "shoal.kernels.flexible", "shoal.kernels.tuples.layout")  # fmt: skip


@cache
def plain_kernels(*names: str) -> SimpleNamespace:
    """Modules of shoal.kernels with nothing compiled in them, beside the ones in use."""
    used = {name: module for name, module in sys.modules.items() if name.startswith("shoal.kernels")}
    attributes = dict(vars(shoal.kernels))
    with (
        mock.patch.multiple(compiling, kernel=_as_is, piece=_as_is, inlined=_as_is),
        mock.patch.object(numba.config, "DISABLE_JIT", True),  # intrinsics have a Python function instead
    ):
        try:
            for name in set(used) - set(_SHARED):
                del sys.modules[name]
            return SimpleNamespace(**{name.rpartition(".")[2]: _fresh(name) for name in names})
        finally:
            for name in [name for name in sys.modules if name.startswith("shoal.kernels")]:
                del sys.modules[name]
            sys.modules.update(used)
            vars(shoal.kernels).update(attributes)


def _fresh(name: str) -> ModuleType:
    return importlib.import_module(f"shoal.kernels.{name}")


def _as_is(function):
    return function
