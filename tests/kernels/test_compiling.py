"""How kernels are compiled: pieces linked, not optimized alone; one version for constants; the first time reported."""

from __future__ import annotations

import gc
import logging
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core import event
from numba.core.compiler import DefaultPassBuilder, Flags
from numba.core.errors import TypingError

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
