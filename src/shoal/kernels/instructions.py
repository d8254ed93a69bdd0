"""Processor instructions that Numba does not offer: prefetch memory, compare, copy or convert many bytes at once.

Each is an intrinsic and a Python function with the same result, which replaces it where nothing is compiled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

WORDS = 8
"""Words of a cache line."""
BLOCK = 32
"""Bytes that copy_block copies."""
_FOR_WRITING, _KEEP, _DATA = 1, 3, 1
_WORD, _BYTE = ir.IntType(64), ir.IntType(8)
_LINE = ir.VectorType(_WORD, WORDS)
_HALF_BLOCK, _WHOLE_BLOCK = ir.VectorType(_BYTE, BLOCK // 2), ir.VectorType(_BYTE, BLOCK)


def _address(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    made = context.make_array(kind)(context, builder, array)
    places = [at, *(ir.Constant(_WORD, 0) for _ in range(kind.ndim - 1))]
    return cgutils.get_item_pointer(context, builder, kind, made, places, wraparound=False)


def _repeated(builder: Any, number: Any) -> Any:
    """One number in all words of a line."""
    first = builder.insert_element(ir.Constant(_LINE, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(ir.IntType(32), WORDS), [0] * WORDS))


@intrinsic
def _prefetch(typing_context: Any, array: Any, at: Any) -> Any:
    """Prefetch array[at], or the row of that number; it must be inside the array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature.args[0], *arguments)
        number, pointer = ir.IntType(32), _BYTE.as_pointer()
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        )
        hints = [ir.Constant(number, value) for value in (_FOR_WRITING, _KEEP, _DATA)]
        builder.call(function, [builder.bitcast(place, pointer), *hints])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _nothing(array: Any, at: int) -> None:
    """Do nothing: without a compiler there is nothing to prefetch."""


@intrinsic
def _compare_line(typing_context: Any, array: Any, at: Any, tag: Any, oldest: Any, count: Any) -> Any:
    """See _compare_words."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, *numbers = arguments
        place = _address(context, builder, signature.args[0], array, at)
        words = builder.load(builder.bitcast(place, _LINE.as_pointer()))
        words.align = 8
        tag, oldest, count = (_repeated(builder, number) for number in numbers)
        low = ir.Constant(_LINE, [0xFFFFFFFF] * WORDS)
        has_tag = builder.icmp_unsigned("==", builder.lshr(words, ir.Constant(_LINE, [32] * WORDS)), tag)
        age = builder.and_(builder.sub(words, oldest), low)
        is_live = builder.icmp_unsigned("<", age, count)
        has_both = builder.and_(has_tag, is_live)
        both, live = (builder.zext(builder.bitcast(bits, _BYTE), _WORD) for bits in (has_both, is_live))
        return builder.or_(both, builder.shl(live, ir.Constant(_WORD, WORDS)))

    return types.int64(array, types.intp, types.int64, types.int64, types.int64), generate


def _compare_words(array: Any, at: int, tag: int, oldest: int, count: int) -> int:
    """Compare array[at : at + 8], words of tag << 32 | number, with a tag and a range of numbers.

    Bit 8 + i is set if the number of word i is among the `count` ones from `oldest` on, bit i if it also has the tag.
    """
    found = 0
    for place in range(WORDS):
        word = int(array[at + place])
        is_live = (word - int(oldest)) & 0xFFFFFFFF < count
        found |= (is_live and (word >> 32) & 0xFFFFFFFF == tag) << place | is_live << (WORDS + place)
    return found


@intrinsic
def _lowest_bit(typing_context: Any, number: Any) -> Any:
    """See _lowest_place."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


def _lowest_place(number: int) -> int:
    """The place of the lowest bit set in a number that is not 0."""
    return (int(number) & -int(number)).bit_length() - 1


@intrinsic
def _copy_block(typing_context: Any, source: Any, at: Any, target: Any, to: Any) -> Any:
    """See _copy_bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, at, target, to = arguments
        start = _address(context, builder, signature.args[0], source, at)
        block = builder.load(builder.bitcast(start, _WHOLE_BLOCK.as_pointer()), align=1)
        place = _address(context, builder, signature.args[2], target, to)
        builder.store(block, builder.bitcast(place, _WHOLE_BLOCK.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(source, types.intp, target, types.intp), generate


def _copy_bytes(source: Any, at: int, target: Any, to: int) -> None:
    """Copy 32 bytes from one array of bytes to another; all of them must be inside both."""
    target[to : to + BLOCK] = source[at : at + BLOCK]


@intrinsic
def _write_hex(typing_context: Any, words: Any, row: Any, target: Any, to: Any) -> Any:
    """See _write_digits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words, row, target, to = arguments
        start = _address(context, builder, signature.args[0], words, row)
        numbers = builder.load(builder.bitcast(start, _HALF_BLOCK.as_pointer()), align=8)
        upper = builder.lshr(numbers, ir.Constant(_HALF_BLOCK, [4] * _HALF_BLOCK.count))
        lower = builder.and_(numbers, ir.Constant(_HALF_BLOCK, [15] * _HALF_BLOCK.count))
        order = [place // 2 + (place % 2) * _HALF_BLOCK.count for place in range(BLOCK)]
        digits = builder.shuffle_vector(upper, lower, ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), order))
        is_letter = builder.icmp_unsigned(">", digits, ir.Constant(_WHOLE_BLOCK, [9] * BLOCK))
        letters, numerals = (ir.Constant(_WHOLE_BLOCK, [first] * BLOCK) for first in (ord("a") - 10, ord("0")))
        characters = builder.add(digits, builder.select(is_letter, letters, numerals))
        place = _address(context, builder, signature.args[2], target, to)
        builder.store(characters, builder.bitcast(place, _WHOLE_BLOCK.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(words, types.intp, target, types.intp), generate


def _write_digits(words: Any, row: int, target: Any, to: int) -> None:
    """Write the two words of a row as 32 hexadecimal characters, lowest byte first."""
    for place, digit in enumerate(words[row].tobytes().hex().encode()):
        target[to + place] = digit


_IS_COMPILED = not getattr(config, "DISABLE_JIT", False)
prefetch: Any = _prefetch if _IS_COMPILED else _nothing
compare_line: Any = _compare_line if _IS_COMPILED else _compare_words
lowest_bit: Any = _lowest_bit if _IS_COMPILED else _lowest_place
copy_block: Any = _copy_block if _IS_COMPILED else _copy_bytes
write_hex: Any = _write_hex if _IS_COMPILED else _write_digits
