"""Ask whose row it is, or print what to type, where `shoal init` is not certain."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.inspection import Facts, PersonDoubt


def print_doubt(doubt: PersonDoubt, data: str) -> None:
    """List the candidates with what speaks for each, and the commands that settle it."""
    from shoal.cli.output.program import command_line
    from shoal.schema import ROWS

    given = sys.argv[1:] if sys.argv[1:2] == ["init"] else ["init", data]
    print("error: whose row is it? No column is certain to be the person; nothing was written", file=sys.stderr)
    for line in _lines(doubt):
        print(line, file=sys.stderr)
    for number, one in enumerate(doubt.candidates):
        word = "continue with" if not number else "or"
        print(f"{word:>13}  {command_line(*given, '--person', one.column)}", file=sys.stderr)
    print(f"{'or':>13}  {command_line(*given, '--person', ROWS)}   (every row is another person)", file=sys.stderr)


def ask_person(doubt: PersonDoubt, facts: Mapping[str, Facts]) -> str | None:
    """The column of persons, or `row`, as answered on a terminal; None if nobody answers."""
    from shoal.schema import ROWS

    print("whose row is it? These columns may be the person:")
    print("\n".join(_lines(doubt)))
    while True:
        try:
            answer = input(f"name the column, or {ROWS} if every row is another person > ").strip()
        except EOFError:
            return None
        if answer == ROWS or answer in facts:
            return answer
        print(f"no column has this name; write one of {', '.join(one.column for one in doubt.candidates)}, or {ROWS}")


def _lines(doubt: PersonDoubt) -> list[str]:
    from shoal.inspection.columns.column_names import printable

    width = max(len(printable(one.column)) for one in doubt.candidates)
    return [f"  {printable(one.column):<{width}}  {one.evidence}" for one in doubt.candidates]
