"""A pytest plugin that keeps every call of the auditor in a folder; `tests.tools.capture_audits` runs it.

Without pytest, for releases of one's own:

    with capturing(Path("/tmp/cases"), "adult, k = 10"):
        shoal.audit("released.csv", truth="adult.csv", policy="policy.toml")

A call is what `shoal.audit`, `audit_table`, `attack` and `report_windows` are given, by a test, a method or a command.
Calls in other processes, and the auditor on Spark, are not seen.
"""

from __future__ import annotations

import functools
import inspect
import re
import shutil
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, local
from typing import Any

import pytest

import shoal.auditor
from tests.tools.audit_case import ENTRIES, LEFT_OUT, Unstorable, answer, failure, write_answer, write_inputs

_LONGEST = 120
Entry = Callable[..., Any]


class Capture:
    """Keeps the calls of the auditor, once it is put in the place of the auditor's public functions."""

    def __init__(self, folder: Path, test: str = "") -> None:
        self.folder, self.test = folder, test
        self._originals: dict[str, Entry] = {name: getattr(shoal.auditor, name) for name in ENTRIES}
        self._wrapped = {name: self._wrapping(name, entry) for name, entry in self._originals.items()}
        self._counts: Counter[str] = Counter()
        self._inside, self._lock = local(), Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Replace the functions in every module that has them."""
        _replace({self._originals[name]: self._wrapped[name] for name in ENTRIES})

    def stop(self) -> None:
        """Take the replacements back."""
        _replace({self._wrapped[name]: self._originals[name] for name in ENTRIES})

    def _wrapping(self, name: str, entry: Entry) -> Entry:
        @functools.wraps(entry)
        def called(*given: Any, **named: Any) -> Any:
            if getattr(self._inside, "now", False):  # by another entry, whose call is kept
                return entry(*given, **named)
            self._inside.now = True
            try:
                return self._keep(name, entry, given, named)
            finally:
                self._inside.now = False

        return called

    def _keep(self, name: str, entry: Entry, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        case = self._next_case()
        try:
            inputs = write_inputs(case, _by_name(entry, given, named))
        except Exception as error:
            self._leave_out(case, str(error) if isinstance(error, Unstorable | TypeError) else type(error).__name__)
            return entry(*given, **named)
        try:
            report = entry(*given, **named)
        except Exception as error:
            write_answer(case, self.test, name, inputs, failure(error))
            raise
        write_answer(case, self.test, name, inputs, answer(report))
        return report

    def _next_case(self) -> Path:
        with self._lock:
            self._counts[self.test] += 1
            case = self.folder / f"{file_name(self.test)}-{self._counts[self.test]:03d}"
        shutil.rmtree(case, ignore_errors=True)  # of an earlier run
        return case

    def _leave_out(self, case: Path, why: str) -> None:
        shutil.rmtree(case, ignore_errors=True)
        with (self.folder / LEFT_OUT).open("a", encoding="utf-8") as file:
            file.write(f"{why}\t{self.test}\n")


def _by_name(entry: Entry, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name."""
    signature = inspect.signature(entry)
    bound = dict(signature.bind(*given, **named).arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            bound |= bound.pop(parameter.name, {})
    return bound


def _replace(functions: dict[Entry, Entry]) -> None:
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if inspect.isfunction(value) and value in functions:
                setattr(module, name, functions[value])


def file_name(test: str) -> str:
    """A test's name as that of a file; a checksum keeps names apart that lose something on the way."""
    name = test.removeprefix("tests/").replace(".py::", ".").replace("/", ".")
    kept = re.sub(r"[^\w.\[\]=,-]+", "_", name, flags=re.ASCII)[:_LONGEST]
    return kept if kept == name else f"{kept}~{zlib.crc32(name.encode('utf-8', 'backslashreplace')):08x}"


@contextmanager
def capturing(folder: Path, name: str) -> Iterator[None]:
    """Keep every call of the auditor inside, under a name."""
    capture = Capture(folder, name)
    capture.start()
    try:
        yield
    finally:
        capture.stop()


# ---- pytest


class _Plugin:
    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._capture.test = item.nodeid

    def pytest_unconfigure(self) -> None:
        self._capture.stop()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the folder of the cases."""
    parser.addoption("--audits-to", help="keep every call of the auditor in this folder")


def pytest_configure(config: pytest.Config) -> None:
    """Begin before any test is imported."""
    folder = config.getoption("--audits-to")
    if folder is not None:
        capture = Capture(Path(folder))
        capture.start()
        config.pluginmanager.register(_Plugin(capture))
