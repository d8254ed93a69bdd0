"""The `shoal` command. Commands load what they need when they are called, so that help stays fast."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Final

from cyclopts import App

from shoal import __version__
from shoal.cli.audit import audit
from shoal.cli.demo import demo
from shoal.cli.doctor import doctor
from shoal.cli.ontology import ontology
from shoal.cli.report import report
from shoal.cli.reproduce import reproduce
from shoal.cli.run import run
from shoal.cli.sanitize import sanitize
from shoal.cli.tune import tune
from shoal.errors import PolicyError, ShoalError

app = App(
    name="shoal",
    version=__version__,
    help="Let a stream of data about people flow on while no one in it stands out.",
    help_format="plaintext",
)
app.command(run)
app.command(sanitize)
app.command(doctor)
app.command(tune)
app.command(audit)
app.command(report)
app.command(ontology)
app.command(demo)
app.command(reproduce)


_PIPE_CLOSED: Final = 141
"""As a shell tells of whoever wrote to a reader that had gone: nothing was said about the run."""


def main() -> None:
    """Run the command line; end with exit code 0, 1 for a failed run or 2 for a wrong policy.

    Where the reader of standard output goes away (`| head`) that changes no verdict: it is the exit code all the same,
    or 141 where the reader went before there was one.
    """
    code: object = _PIPE_CLOSED
    try:
        code = _code()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code if isinstance(code, int) else 0)


def _code() -> object:
    try:
        return app(sys.argv[1:], result_action="return_value")
    except ShoalError as error:
        return _say(error)
    except KeyboardInterrupt:
        print("shoal: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        return _confess(error)


def _say(error: ShoalError) -> int:
    problems = error.problems if isinstance(error, PolicyError) else (str(error),)
    for problem in problems:
        print(f"shoal: {problem}", file=sys.stderr)
    return error.exit_code


def _confess(error: Exception) -> int:
    """A fault of ours: where it happened and no text of it, which could hold somebody's value."""
    if os.environ.get("SHOAL_DEBUG"):
        raise error
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    print(
        f"shoal: this should not have happened: {type(error).__name__} at {where}; please report it. "
        "SHOAL_DEBUG=1 shows the whole trace, which may hold values of your data",
        file=sys.stderr,
    )
    return 1
