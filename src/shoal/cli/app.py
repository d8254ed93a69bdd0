"""The `shoal` command. Commands load what they need when they are called, so that help stays fast."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from typing import Final

from cyclopts import App, CycloptsError, CycloptsPanel, MissingArgumentError

from shoal import __version__
from shoal.cli.demo import demo
from shoal.cli.doctor import doctor
from shoal.cli.evidence.attack import attack
from shoal.cli.evidence.audit import audit
from shoal.cli.evidence.compare import compare
from shoal.cli.evidence.report import report
from shoal.cli.init import init
from shoal.cli.methods import methods
from shoal.cli.ontology import ontology
from shoal.cli.repartition import repartition
from shoal.cli.reproduce.reproduce import reproduce
from shoal.cli.run import run
from shoal.cli.sanitize import sanitize
from shoal.cli.serve import serve
from shoal.cli.tune import tune
from shoal.cli.warmup import warmup
from shoal.errors import PolicyError, ShoalError

app = App(
    name="shoal",
    version=__version__,
    help="Anonymize streams of data about people, and audit what was published.",
    help_format="markdown",
)
app.command(init)
app.command(run)
app.command(serve)
app.command(repartition)
app.command(sanitize)
app.command(doctor)
app.command(tune)
app.command(audit)
app.command(attack)
app.command(compare)
app.command(report)
app.command(methods)
app.command(ontology)
app.command(demo)
app.command(reproduce)
app.command(warmup)
app.register_install_completion_command(help="Install completion for this shell (bash, zsh, fish) and exit.")


_PIPE_CLOSED: Final = 141
"""128 + SIGPIPE, as a shell reports it: the reader of standard output is gone."""
_EXAMPLES: Final = {
    "policy": "policy.toml",
    "release": "released.parquet",
    "truth": "visits.csv",
    "input": "visits.csv",
}


def main() -> None:
    """Run the command line; end with exit code 0, 1 for a failed run, 2 for a wrong policy or 3 for a useless run.

    A reader of standard output that closes early (`| head`) does not change the exit code, unless it closes before
    the code is known: then it is 141.
    """
    code: object = _PIPE_CLOSED
    logging.getLogger("shoal").setLevel(logging.ERROR)  # commands report compiling and pending rows themselves
    try:
        code = _code()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code if isinstance(code, int) else 0)


def _code() -> object:
    try:
        return app(sys.argv[1:], result_action="return_value", print_error=False, exit_on_error=False)
    except CycloptsError as error:
        return _explain(error)
    except ShoalError as error:
        return _report(error)
    except KeyboardInterrupt:
        print("shoal: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        return _report_internal_error(error)


def _explain(error: CycloptsError) -> int:
    """Say how to call a command when a required argument is missing; show other mistakes in a box."""
    if not isinstance(error, MissingArgumentError) or error.argument is None or error.keyword is not None:
        from rich.console import Console

        Console(stderr=True).print(CycloptsPanel(error))
        return PolicyError.exit_code
    option = error.argument.name
    name = option.lstrip("-").lower()
    example = _EXAMPLES.get(name, name.upper())
    command = " ".join([str(app.name[0]), *(error.command_chain or ())])
    if error.argument.field_info.is_positional:
        print(f"shoal: name the {name}: {command} {example}", file=sys.stderr)
    else:
        print(f"shoal: {option} is missing: {command} … {option} {example}", file=sys.stderr)
    return PolicyError.exit_code


def _report(error: ShoalError) -> int:
    problems = error.problems if isinstance(error, PolicyError) else (str(error),)
    for problem in problems:
        print(f"shoal: {problem}", file=sys.stderr)
    return error.exit_code


def _report_internal_error(error: Exception) -> int:
    """Internal error: report the location, never the message, which may contain data."""
    if os.environ.get("SHOAL_DEBUG"):
        raise error
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    print(
        f"shoal: internal error: {type(error).__name__} at {where}; please report it. "
        "SHOAL_DEBUG=1 shows the whole traceback, which may contain values of your data",
        file=sys.stderr,
    )
    return 1
