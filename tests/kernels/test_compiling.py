"""How kernels are compiled: pieces linked, not optimized alone; one version for constants; the first time reported."""

from __future__ import annotations

import gc
import logging
import operator
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from llvmlite import ir
from numba import types
from numba.core import event
from numba.core.compiler import DefaultPassBuilder, Flags
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

from shoal.kernels import compiling, notice
from shoal.kernels.compiling import kernel, njit, piece

pytestmark = pytest.mark.compiled


@piece
def doubled(number):
    return 2 * number


@piece
def doubled_twice(number):
    return doubled(number) + doubled(3)


def total(numbers):
    found = 0
    for at in range(len(numbers)):
        found += doubled_twice(numbers[at])
    return found


def test_a_piece_is_only_linked_and_compiled_once_for_constants_and_variables():
    assert njit(total)(np.array([1, 2])) == 18
    assert [len(made.overloads) for made in (doubled, doubled_twice)] == [1, 1]
    (linked,) = doubled_twice.overloads.values()
    assert type(linked.library).__name__ == "_PieceLibrary"
    assert linked.library.get_pointer_to_function(linked.fndesc.mangled_name) == 0


def test_another_version_of_numba_compiles_pieces_its_own_way(monkeypatch):
    monkeypatch.setattr(compiling, "LIBRARY_PARTS", (*compiling.LIBRARY_PARTS, "something_else"))

    @piece
    def tripled(number):
        return 3 * number

    assert njit(lambda number: tripled(number))(5) == 15
    (compiled,) = tripled.overloads.values()
    assert type(compiled.library).__name__ != "_PieceLibrary"


@pytest.mark.parametrize(
    ("name", "value"),
    [("FLAGS_PARTS", (*compiling.FLAGS_PARTS, "something_else")), ("_FLAGS_HASH", compiling._FLAGS_HASH + 1)],
    ids=["parts", "hash"],
)
def test_another_version_of_numba_looks_up_options_its_own_way(monkeypatch, name, value):
    flags = Flags()
    assert type(compiling._quick(flags)) is compiling._QuickFlags
    monkeypatch.setattr(compiling, name, value)
    assert compiling._quick(flags) is flags

    @kernel
    def tripled(number):
        return 3 * number

    assert tripled(5) == 15


def test_quick_options_are_equal_to_numbas_own_exactly_if_their_values_are():
    def made(**values):
        flags = Flags()
        for option, value in values.items():
            setattr(flags, option, value)
        return flags

    default = Flags().nrt
    several = [made(), made(nrt=default), made(nrt=not default), made(nrt=not default, release_gil=True)]
    for one in several:
        quick = compiling._quick(one)
        assert hash(quick) == hash(one)
        assert quick != "options"
        for other in several:
            assert (quick == other) == (other == quick) == (quick == compiling._quick(other)) == (one == other)


def compiled(function):
    """Compile a function as a kernel, but every time: without a cache."""
    return njit(function, pipeline_class=compiling.KernelCompiler)


@pytest.fixture
def no_signatures(monkeypatch):
    monkeypatch.setattr(compiling, "_SIGNATURES", {})
    return compiling._SIGNATURES


def test_an_operation_is_looked_up_once_for_the_same_types(no_signatures, monkeypatch):
    looked_up = []
    usual = types.Function.get_call_type

    def counted(function, context, args, kws):
        looked_up.append((function.typing_key, *args))
        return usual(function, context, args, kws)

    monkeypatch.setattr(types.BaseFunction, "get_call_type", counted)

    @compiled
    def sums(number, other, fraction):
        return number + other + number + other, fraction + number

    assert sums(1, 2, 0.5) == (6, 1.5)
    sums_of = [args for key, *args in looked_up if key is operator.add]
    assert [types.int64, types.int64] in sums_of
    assert len(set(map(tuple, sums_of))) == len(sums_of)
    assert all(function.get_impl_key(found) is function.typing_key for found, function, *_ in no_signatures.values())


@pytest.mark.parametrize("can_compile", [True, False])
def test_only_kernels_look_up_operations_once(can_compile, no_signatures):
    @compiled
    def read(numbers):
        return numbers[0] + 1 if can_compile else numbers.no_such_attribute

    with nullcontext() if can_compile else pytest.raises(TypingError):
        read(np.array([1]))
    assert "get_call_type" not in vars(types.Function)
    known = dict(no_signatures)
    assert known
    assert njit(lambda number: number * 2.5)(2) == 5
    assert no_signatures == known


def test_what_numba_implements_in_python_is_looked_up_every_time(no_signatures):
    @compiled
    def least(number, other):
        return min(number, other) + 1

    assert least(4, 3) == 4
    assert {function.typing_key for _, function, *_ in no_signatures.values()} == {operator.add}


def test_another_version_of_numba_looks_up_operations_its_own_way(no_signatures, monkeypatch):
    monkeypatch.setattr(compiling, "FUNCTION_PARTS", (*compiling.FUNCTION_PARTS, "something_else"))

    @compiled
    def added(number):
        return number + number

    assert added(5) == 10
    assert not no_signatures


def test_sizes_of_types_are_numbas_own():
    target = SimpleNamespace(get_abi_sizeof=cpu_target.target_context.get_abi_sizeof)
    compiling._sized_once(target)
    named = ir.global_context.get_identified_type("tests.named")
    named.set_body(ir.IntType(64), ir.IntType(8))
    kinds = [ir.IntType(8), ir.DoubleType(), ir.LiteralStructType([ir.IntType(64), ir.IntType(8).as_pointer()])]
    for kind in [*kinds, *kinds, named]:
        assert target.get_abi_sizeof(kind) == cpu_target.target_context.get_abi_sizeof(kind)
    assert str(kinds[2]) in compiling._SIZES
    assert not any("%" in text for text in compiling._SIZES)


def test_passes_for_what_no_kernel_contains_are_left_out_and_all_others_kept():
    usual = DefaultPassBuilder.define_nopython_pipeline(SimpleNamespace(func_ir=None, flags=Flags()))
    names = [made.name() for made, _ in usual.passes]
    assert set(names) >= compiling.UNUSED_PASSES
    kept = [made.name() for made, _ in compiling._without_unused(usual).passes]
    assert kept == [name for name in names if name not in compiling.UNUSED_PASSES]


def test_a_piece_called_in_several_ways_is_linked_once():
    @piece
    def left(number):
        return doubled(number) - 1

    @piece
    def both(number):
        return left(number) + doubled_twice(number)

    assert njit(lambda number: both(number) + doubled(number))(5) == 9 + 16 + 10


def test_a_kernel_has_one_version_for_constants_and_variables():
    @njit
    def both(number):
        return once(number) + once(7)

    @kernel
    def once(number):
        return number + 1

    assert both(1) == 10
    assert len(once.overloads) == 1


def compile_for(listener, seconds, clock, module="shoal.kernels.tuples.fads"):
    """Compile a kernel of a module that needs another function after some seconds."""
    function = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
    started = event.Event("numba:compile", event.EventStatus.START, {"dispatcher": function})
    listener.on_start(started)
    clock.now += seconds
    listener.on_start(started)
    listener.on_end(started)
    listener.on_end(started)


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr(notice.time, "perf_counter", lambda: made.now)
    return made


def test_the_first_long_compilation_is_reported_once(clock, caplog, monkeypatch):
    monkeypatch.delenv("SHOAL_QUIET", raising=False)
    listener = notice._FirstCompile()
    with caplog.at_level(logging.WARNING, logger="shoal.kernels"):
        compile_for(listener, 0.5, clock)
        compile_for(listener, 60, clock, module="elsewhere")
        assert caplog.messages == []
        compile_for(listener, 1.5, clock)
        compile_for(listener, 1.5, clock, module="shoal.kernels.z.crowd")
    (message,) = caplog.messages
    assert notice.USUAL["tuples"] in message


def test_nothing_is_reported_where_that_is_not_wanted(clock, caplog, monkeypatch):
    monkeypatch.setenv("SHOAL_QUIET", "1")
    compile_for(notice._FirstCompile(), 9, clock)
    assert caplog.messages == []


@pytest.mark.parametrize("can_compile", [True, False])
def test_garbage_is_collected_again_after_a_kernel_is_compiled(can_compile):
    @kernel
    def read(numbers):
        return numbers[0] if can_compile else numbers.no_such_attribute

    with nullcontext() if can_compile else pytest.raises(TypingError):
        read(np.array([1]))
    assert gc.isenabled()
