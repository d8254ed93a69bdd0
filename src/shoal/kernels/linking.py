"""Link the pieces of a kernel before LLVM optimizes it, so that it is optimized once and as a whole.

Numba optimizes every function together with everything it calls, and turns the result into machine code. For a piece,
which only kernels call, both are wasted: they took half of the time to compile the tuple kernels. A piece compiled by
`PieceCompiler` stays as it was lowered until a kernel links it. The kernel's machine code is as fast as before.

`pipeline_class` is Numba's documented way to replace its compiler; what a library consists of is not documented. Where
another version of Numba has other parts, pieces are compiled as Numba does it by itself: slower, with the same result.
"""

from __future__ import annotations

from typing import Any, Final

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

PARTS: Final = (
    "_ensure_finalized", "_final_module", "_finalized", "_get_module_for_linking", "_linking_libraries", "_reload_init",
)  # fmt: skip
"""What linking needs of a library."""


class _NoEnvironment:
    """Stands in for the code generator where Numba sets the environment of a function called from Python."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: a piece is not called from Python. Numba sets none either for a kernel loaded from its cache."""


class _PieceLibrary(JITCodeLibrary):
    """A piece's code, with the code of all it calls, neither optimized nor compiled."""

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - there is no public way
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._final_module.verify()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return _NoEnvironment()


class PieceCompiler(Compiler):
    """Numba's compiler, writing to a library that only links."""

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
        made = _PieceLibrary(target_context.codegen(), "piece")
        is_known = all(hasattr(made, part) for part in PARTS)
        super().__init__(typing_context, target_context, made if is_known else library, *rest)
