"""An RDF file as a graph, or an error that names the line; nothing is ever fetched from elsewhere."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from rdflib import RDFS, Graph, Literal, Namespace
from rdflib.term import Node

from shoal.errors import PolicyError

SHOAL: Final = Namespace("urn:shoal:ontology#")
"""The vocabulary of tags: SparseAttribute, NormalAttribute and priority."""
_BASE: Final = "http://file.invalid/"
"""What relative names are relative to: where the file lies must not matter, and nothing can lie there."""
_FORMATS: Final = {".ttl": "turtle", ".nt": "turtle", ".rdf": "xml", ".xml": "xml"}
_XML_START: Final = re.compile(rb"(\xef\xbb\xbf)?\s*<(\?xml|!DOCTYPE|!--|rdf:RDF|[A-Za-z]+:RDF)")
_LINE: Final = re.compile(r":(\d+):\d+:")
_LANGUAGES: Final = (None, "en")


def read_graph(path: Path) -> Graph:
    """Turtle or RDF/XML, by the ending of the name, else by how the content starts."""
    content = _bytes(path)
    kind = _FORMATS.get(path.suffix.lower()) or ("xml" if _XML_START.match(content) else "turtle")
    data = content if kind == "xml" else _decoded(content, path.name)
    graph = Graph(bind_namespaces="none")
    try:
        with _quiet():
            graph.parse(data=data, format=kind, publicID=_BASE)
    except Exception as error:  # parsers raise what they like; a broken file is not our fault
        if isinstance(error, IndexError | AssertionError) and isinstance(data, str):  # it ran off the end
            last = data.rstrip().count("\n") + 1
            raise PolicyError(f"{path.name}: line {last}: ends within a statement; is the file whole?") from None
        raise _broken(path.name, kind, error) from None
    if not len(graph):
        raise PolicyError(f"{path.name}: says nothing; write classes, and what lies below them")
    return graph


def label(graph: Graph, thing: Node) -> str:
    """What a thing is called: its rdfs:label (without a language before English before others), else its name."""
    if isinstance(thing, Literal):
        return str(thing).strip()
    texts = [text for text in graph.objects(thing, RDFS.label) if isinstance(text, Literal) and text.strip()]
    return min(texts, key=_label_order).strip() if texts else local_name(thing)


def _label_order(text: Literal) -> tuple[int, str, str]:
    language = text.language and text.language.split("-")[0].lower()
    rank = _LANGUAGES.index(language) if language in _LANGUAGES else len(_LANGUAGES)
    return rank, text.language or "", str(text)


def local_name(thing: Node) -> str:
    """The last part of an IRI, or all of it if that is empty."""
    return unquote(re.split(r"[#/:]", str(thing))[-1]).strip() or str(thing)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path.name}: cannot be read ({error.strerror}); check the path") from None


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"{where}: line {line}: is not UTF-8; save the file as UTF-8") from None


def _broken(where: str, kind: str, error: Any) -> PolicyError:
    syntax = "RDF/XML" if kind == "xml" else "Turtle"
    line = _line(error)
    place = f"{where}: line {line}" if line else where
    reason = _reason(error)
    return PolicyError(
        f"{place}: is not valid {syntax}{f' ({reason})' if reason else ''}; mend it there or just before"
    )


def _line(error: Any) -> int | None:
    if hasattr(error, "lines"):  # of Turtle: counted from 0
        return int(error.lines) + 1
    if hasattr(error, "getLineNumber"):
        return int(error.getLineNumber() or 0) or None
    found = _LINE.search(str(error))
    return int(found[1]) if found else None


def _reason(error: Any) -> str:
    """What the parser says, without the passage it quotes."""
    if hasattr(error, "getMessage"):
        return str(error.getMessage())
    quoted = re.search(r"Bad syntax \((.*?)\) at \^", str(error), re.DOTALL)
    text = quoted[1] if quoted else _LINE.split(str(error))[-1]
    return " ".join(text.split())[:100]


@contextmanager
def _quiet() -> Iterator[None]:
    """The parser logs odd numbers with a stack trace; what matters here is checked here."""
    logger = logging.getLogger("rdflib")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
