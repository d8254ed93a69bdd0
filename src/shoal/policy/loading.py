"""From a TOML file to a checked policy, with every problem found at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Concepts
from shoal.methods.registry import METHODS
from shoal.methods.setting_problems import nearest, one_of
from shoal.policy.crosschecks import (
    column_problems,
    default_dead_letters,
    part,
    place_problems,
    resume_problems,
    stream_problems,
    with_stream,
    without_secrets,
)
from shoal.policy.fields import Section, key_path
from shoal.policy.hierarchies import build_concepts, build_hierarchy
from shoal.policy.live.checks import live_problems
from shoal.policy.live.messages import MessageSink, default_letters
from shoal.policy.live.systems import SINKS, SOURCES
from shoal.policy.live.workers import for_worker
from shoal.policy.method_base import KeyPath
from shoal.policy.methods import section_for
from shoal.policy.policy import DeadLetters, Policy
from shoal.policy.sanitize import SanitizeSection, sanitize_problems, with_maid
from shoal.policy.tables import CheckpointSection, DeadLettersSection, StreamSection, TraceSection

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a section is checked: by one model, or by the model for the value of the key `choice`."""

    model: Callable[[str], type[Section] | None]
    choice: str | None = None
    known: Iterable[str] = ()
    is_needed: bool = False


_RULES: Final = {
    "stream": _Rule(lambda _: StreamSection, is_needed=True),
    "source": _Rule(SOURCES.get, "kind", SOURCES, is_needed=True),
    "anonymize": _Rule(section_for, "method", METHODS, is_needed=True),
    "sink": _Rule(SINKS.get, "kind", SINKS, is_needed=True),
    "trace": _Rule(lambda _: TraceSection),
    "dead_letters": _Rule(lambda _: DeadLettersSection),
    "checkpoint": _Rule(lambda _: CheckpointSection),
    "sanitize": _Rule(lambda _: SanitizeSection),
}


def load_policy(
    path: str | PathLike[str], *, checkpoint: str | PathLike[str] | None = None, worker: int | None = None
) -> Policy:
    """Read and check a policy file; relative paths in it are relative to its folder.

    `checkpoint` names a folder, relative to the current one, that replaces the policy's. `worker` is the number of the
    worker, from 0, if several share the stream.
    """
    file = Path(path)
    table = read_tables(file)
    if checkpoint is not None:
        own = table.get("checkpoint")
        table["checkpoint"] = {**(own if isinstance(own, dict) else {}), "path": str(Path(checkpoint).absolute())}
    return for_worker(parse_policy(table, folder=file.absolute().parent, file=file.absolute()), worker)


def parse_policy(table: Table, *, folder: str | PathLike[str] | None = None, file: Path | None = None) -> Policy:
    """Check a policy given as tables; relative paths are relative to `folder`, by default the current one."""
    base = Path(folder).absolute() if folder is not None else Path.cwd()
    clean, problems = without_secrets(table)
    problems += _unknown_sections(clean)
    clean = with_maid(with_stream(clean))
    sections = {name: _section(name, rule, clean, base, problems) for name, rule in _RULES.items()}
    hierarchies = _hierarchies(clean, base, problems)
    problems += stream_problems(clean)
    problems += column_problems(clean)
    problems += resume_problems(clean)
    problems += sanitize_problems(clean)
    problems += live_problems(clean, sections)
    problems += place_problems(clean, folder=base, file=file)
    if problems:
        raise PolicyError(problems)
    return _policy(sections, hierarchies, file)


def read_tables(file: Path) -> dict[str, Any]:
    """The tables of a policy file, not checked; PolicyError with line and column if it is not TOML."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
        return tomllib.loads(text)
    except FileNotFoundError:
        raise PolicyError(f"{file}: does not exist; check the path of the policy") from None
    except OSError as error:
        raise PolicyError(f"{file}: cannot be read ({error.strerror}); name a policy file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"{file}: line {line}: is not UTF-8; save the policy as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{file}: {_toml_problem(str(error), text)}") from None
    except RecursionError:
        raise PolicyError(f"{file}: is nested too deeply; put large hierarchies into files") from None


def _toml_problem(message: str, text: str) -> str:
    found = re.search(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", message, re.DOTALL)
    reason, line, column = found.groups() if found else (message, None, None)
    where = f"line {line}, column {column}" if line else f"line {len(text.splitlines()) or 1}, at the end"
    return f"{where}: is not TOML ({reason[:1].lower() + reason[1:]})"


def _unknown_sections(table: Table) -> list[str]:
    found = []
    for name, value in table.items():
        if name in _RULES:
            continue
        near = nearest(name, _RULES)
        hint = f"did you mean [{near}]?" if near else f"known are {', '.join(f'[{rule}]' for rule in _RULES)}"
        if isinstance(value, Mapping):
            found.append(f"{key_path(name, ())}: unknown section; {hint}")
        else:
            found.append(f"{name}: is outside any section; move it below the header of one")
    return found


def _section(name: str, rule: _Rule, table: Table, folder: Path, problems: list[str]) -> Section | None:
    if name not in table:
        if rule.is_needed and not (name == "sink" and "sanitize" in table):
            problems.append(f"[{name}]: is missing; add this section")
        return None
    content = table[name]
    if not isinstance(content, Mapping):
        problems.append(f"[{name}]: must be a table; write its keys below a line [{name}]")
        return None
    model, content = _model(name, rule, content, problems)
    if model is None:
        return None
    section, found = model.read(content, {"folder": folder})
    problems += [f"{key_path(name, steps)}: {text}" for steps, text in found]
    return section


def _model(name: str, rule: _Rule, content: Table, problems: list[str]) -> tuple[type[Section] | None, Table]:
    """The class that checks a section; after a misspelled choice, that of the nearest, so that all problems show."""
    if rule.choice is None:
        return rule.model(""), content
    chosen = content.get(rule.choice)
    if isinstance(chosen, str) and chosen in rule.known:
        return rule.model(chosen), content
    verb = "is missing; it " if rule.choice not in content else ""
    problems.append(f"[{name}] {rule.choice}: {verb}{one_of(chosen, rule.known)}")
    near = nearest(chosen, rule.known) if isinstance(chosen, str) else None
    return (None, content) if near is None else (rule.model(near), {**content, rule.choice: near})


def _hierarchies(table: Table, folder: Path, problems: list[str]) -> dict[KeyPath, Hierarchy | Concepts]:
    """Build every hierarchy whose description is valid; invalid descriptions are reported elsewhere."""
    anonymize = part(table, "anonymize")
    method = section_for(anonymize.get("method"))
    built = {}
    for steps, described in (method.hierarchy_tables(anonymize) if method else {}).items():
        try:
            hierarchy = _built(steps, described, folder)
        except PolicyError as error:
            texts = [problem.removeprefix("hierarchy: ").removeprefix("ontology: ") for problem in error.problems]
            problems += [f"{key_path('anonymize', steps)}: {text}" for text in texts]
        else:
            built.update({steps: hierarchy} if hierarchy else {})
    return built


def _built(steps: KeyPath, described: object, folder: Path) -> Hierarchy | Concepts | None:
    if steps[-1] == "ontology":
        return build_concepts(described, steps[-2], folder=folder)
    return build_hierarchy(described, folder=folder)


def _policy(sections: dict[str, Any], hierarchies: dict[KeyPath, Hierarchy | Concepts], file: Path | None) -> Policy:
    dead = sections["dead_letters"] or DeadLettersSection()
    method = sections["anonymize"]
    sanitize = sections["sanitize"]
    sink = sections["sink"]
    if isinstance(sink, MessageSink) and dead.path is None:
        letters = DeadLetters(None, dead.keep_rows, dead.name or default_letters(sink.name))
    else:
        where = dead.path or default_dead_letters(sanitize.sealed if sanitize else sink.place)
        letters = DeadLetters(where, dead.keep_rows)
    return Policy(
        stream=sections["stream"],
        source=sections["source"],
        anonymize=method,
        written_sink=sink,
        dead_letters=letters,
        trace=sections["trace"],
        checkpoint=sections["checkpoint"],
        sanitize=sanitize,
        hierarchies={column: hierarchies[steps] for column, steps in method.hierarchy_keys().items()},
        warnings=tuple(
            f"[{name}] {text}"
            for name in ("source", "anonymize", "sink")
            if sections[name] is not None
            for text in sections[name].warnings()
        ),
        file=file,
    )
