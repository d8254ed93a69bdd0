"""SipHash-2-4 of eight texts at a time, one in each lane of the processor's vector registers.

The rounds of one text depend on each other; those of eight texts do not. The hashes equal those of siphash128, which
also replaces this where nothing is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from shoal.kernels.siphash import siphash128

LANES = 8
_WORD = ir.IntType(64)
_LANES = ir.VectorType(_WORD, LANES)
_START = (0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573)


def _constant(value: int) -> Any:
    return ir.Constant(_LANES, [value] * LANES)


def _rotated(builder: Any, vector: Any, bits: int) -> Any:
    return builder.or_(builder.shl(vector, _constant(bits)), builder.lshr(vector, _constant(64 - bits)))


def _round(builder: Any, state: list[Any]) -> list[Any]:
    """One SipRound."""
    v0, v1, v2, v3 = state
    v0, v2 = builder.add(v0, v1), builder.add(v2, v3)
    v1, v3 = builder.xor(_rotated(builder, v1, 13), v0), builder.xor(_rotated(builder, v3, 16), v2)
    v0 = _rotated(builder, v0, 32)
    v2, v0 = builder.add(v2, v1), builder.add(v0, v3)
    v1, v3 = builder.xor(_rotated(builder, v1, 17), v2), builder.xor(_rotated(builder, v3, 21), v0)
    return [v0, v1, _rotated(builder, v2, 32), v3]


def _absorbed(builder: Any, state: list[Any], message: Any) -> list[Any]:
    """Absorb eight bytes of every text: two rounds."""
    state = _round(builder, _round(builder, [*state[:3], builder.xor(state[3], message)]))
    return [builder.xor(state[0], message), *state[1:]]


def _four_rounds(builder: Any, state: list[Any], at: int, mark: int) -> tuple[list[Any], Any]:
    """The rounds before one half of the result, and that half."""
    state = [builder.xor(word, _constant(mark)) if place == at else word for place, word in enumerate(state)]
    for _ in range(4):
        state = _round(builder, state)
    half = builder.xor(builder.xor(state[0], state[1]), builder.xor(state[2], state[3]))
    return state, half


def _spread(builder: Any, number: Any) -> Any:
    """One number in all lanes."""
    first = builder.insert_element(_constant(0), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _joined(builder: Any, numbers: list[Any]) -> Any:
    """Eight numbers as one vector."""
    vector = ir.Constant(_LANES, ir.Undefined)
    for lane, number in enumerate(numbers):
        vector = builder.insert_element(vector, number, ir.Constant(ir.IntType(32), lane))
    return vector


def _loaded(builder: Any, data: Any, places: list[Any]) -> Any:
    """Eight bytes, little endian, from each place; all places are inside data."""
    pointers = [builder.bitcast(builder.gep(data, [place]), _WORD.as_pointer()) for place in places]
    return _joined(builder, [builder.load(pointer, align=1) for pointer in pointers])


def _last_words(builder: Any, data: Any, ends: list[Any], lengths: Any) -> Any:
    """The bytes after the last whole word, and the length: one load that ends where the text ends."""
    rest = builder.and_(lengths, _constant(7))
    loaded = _loaded(builder, data, [builder.sub(end, ir.Constant(_WORD, 8)) for end in ends])
    shift = builder.mul(builder.sub(_constant(7), rest), _constant(8))
    bytes_left = builder.lshr(builder.lshr(loaded, shift), _constant(8))
    return builder.or_(bytes_left, builder.shl(builder.and_(lengths, _constant(0xFF)), _constant(56)))


def _whole_words(builder: Any, data: Any, begins: Any, ends: Any, counts: Any, most: Any, slots: list[Any]) -> None:
    """Absorb the whole words of all texts; the state of a text that has no more does not change."""
    with cgutils.for_range(builder, most) as loop:
        has_more = builder.icmp_unsigned("<", _spread(builder, loop.index), counts)
        places, step = [], builder.mul(loop.index, ir.Constant(_WORD, 8))
        for begin, end in zip(begins, ends, strict=True):
            # a text that has no more is read again at its end: any place inside data works
            here, last = builder.add(begin, step), builder.sub(end, ir.Constant(_WORD, 8))
            places.append(builder.select(builder.icmp_signed("<", here, last), here, last))
        before = [builder.load(slot) for slot in slots]
        after = _absorbed(builder, before, _loaded(builder, data, places))
        for slot, old, new in zip(slots, before, after, strict=True):
            builder.store(builder.select(has_more, new, old), slot)


@intrinsic
def _hash_eight(
    typing_context: Any, key0: Any, key1: Any, data: Any, begins: Any, ends: Any, most: Any, out: Any, at: Any
) -> Any:
    """See _one_by_one."""
    numbers = types.UniTuple(types.int64, LANES)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        key0, key1, data, begins, ends, most, out, at = arguments
        text = context.make_array(signature.args[2])(context, builder, data).data
        keys = [_spread(builder, key) for key in (key0, key1)]
        begins, ends = ([builder.extract_value(all_of, lane) for lane in range(LANES)] for all_of in (begins, ends))
        lengths = builder.sub(_joined(builder, ends), _joined(builder, begins))
        slots = []
        for place, start in enumerate(_START):
            slots.append(cgutils.alloca_once(builder, _LANES))
            builder.store(builder.xor(keys[place & 1], _constant(start)), slots[-1])
        _whole_words(builder, text, begins, ends, builder.lshr(lengths, _constant(3)), most, slots)
        state = [builder.load(slot) for slot in slots]
        state = _absorbed(builder, state, _last_words(builder, text, ends, lengths))
        state, low = _four_rounds(builder, state, 2, 0xEE)
        state, high = _four_rounds(builder, state, 1, 0xDD)
        order = [lane // 2 + lane % 2 * LANES for lane in range(2 * LANES)]
        pairs = builder.shuffle_vector(low, high, ir.Constant(ir.VectorType(ir.IntType(32), 2 * LANES), order))
        kind = signature.args[6]
        rows = context.make_array(kind)(context, builder, out)
        row = cgutils.get_item_pointer(context, builder, kind, rows, [at, ir.Constant(_WORD, 0)], wraparound=False)
        builder.store(pairs, builder.bitcast(row, pairs.type.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, data, numbers, numbers, types.int64, out, types.intp), generate


def _one_by_one(key0: Any, key1: Any, data: Any, begins: Any, ends: Any, most: Any, out: Any, at: Any) -> None:
    """Hash data[begins[i]:ends[i]], begins and ends tuples of eight, into row at + i of `out`: low and high word.

    Every end must be at least 8, `most` at least the whole words of every text, and `out` contiguous.
    """
    for lane in range(LANES):
        low, high = siphash128(key0, key1, data, begins[lane], ends[lane])
        out[at + lane, 0], out[at + lane, 1] = np.uint64(low).astype(np.int64), np.uint64(high).astype(np.int64)


hash_eight: Any = _one_by_one if getattr(config, "DISABLE_JIT", False) else _hash_eight
