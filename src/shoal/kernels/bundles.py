"""Hand a bundle of arrays, a named tuple, from kernel to kernel by its address.

Numba hands over every part of every array by itself: a bundle of 22 arrays is 200 arguments, which are written out at
every call and put together in every function. By its address it is one, and a function loads the arrays it uses. That
takes a fifth off the time to compile the tuple kernels, and the machine code is as fast as before.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, lower_getattr_generic, models, register_model, typeof_impl, unbox


def bundle(cls: Any) -> Any:
    """Hand over the named tuples of a class by their address."""
    typeof_impl.register(cls)(lambda value, context: Bundle([typeof_impl(field, context) for field in value], cls))
    return cls


class Bundle(types.NamedTuple):
    """What Numba knows of a bundle: the types of its fields, and its class."""


@register_model(Bundle)
class _Address(models.PrimitiveModel):
    def __init__(self, models_of: Any, bundled: Any) -> None:
        fields = [models_of.lookup(field).get_value_type() for field in bundled.types]
        super().__init__(models_of, bundled, ir.LiteralStructType(fields).as_pointer())


@unbox(Bundle)
def _put_down(bundled: Any, value: Any, c: Any) -> Any:
    """Put a bundle that comes from Python into memory that lasts for the call."""
    whole = c.unbox(types.NamedTuple(bundled.types, bundled.instance_class), value)
    address = cgutils.alloca_once_value(c.builder, whole.value)
    return NativeValue(address, is_error=whole.is_error, cleanup=whole.cleanup)


@lower_getattr_generic(Bundle)
def _field(context: Any, builder: Any, bundled: Any, address: Any, name: str) -> Any:
    """Load a field.

    Kernels write to arrays, never to the bundle, which is put down outside of them. Told that it does not change, LLVM
    loads a field once and not again after every write. The mark of an immutable type (tbaa) is kept where LLVM loads
    the parts of an array one by one; `invariant.load` is not.
    """
    found = builder.load(cgutils.gep_inbounds(builder, address, 0, bundled.fields.index(name)))
    number, note = ir.IntType(64), builder.module.add_metadata
    kind = note(["field", note(["bundle"]), number(0)])
    found.set_metadata("tbaa", note([kind, kind, number(0), number(1)]))
    found.set_metadata("invariant.load", note([]))
    return found
