"""Prefetch memory into the cache before it is needed."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

_FOR_WRITING, _KEEP, _DATA = 1, 3, 1


@intrinsic
def _prefetch(typing_context: Any, array: Any, at: Any) -> Any:
    """Prefetch array[at] of a one-dimensional array; `at` must be inside it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        made = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, kind, made, [arguments[1]], wraparound=False)
        number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        )
        hints = [ir.Constant(number, value) for value in (_FOR_WRITING, _KEEP, _DATA)]
        builder.call(function, [builder.bitcast(place, pointer), *hints])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _nothing(array: Any, at: int) -> None:
    """Do nothing: without a compiler there is nothing to prefetch."""


prefetch: Any = _nothing if getattr(config, "DISABLE_JIT", False) else _prefetch
