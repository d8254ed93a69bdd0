"""Read an RDF file as a graph; errors name the line, and nothing is fetched from the network."""

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
from shoal.hierarchies.text_files import decode, read_bytes

SHOAL: Final = Namespace("urn:shoal:ontology#")
"""The vocabulary of tags: SparseAttribute, NormalAttribute and priority."""
_BASE: Final = "http://file.invalid/"
"""The base of relative names: fixed, so that the location of the file does not matter, and unreachable."""
_FORMATS: Final = {".ttl": "turtle", ".nt": "turtle", ".rdf": "xml", ".xml": "xml"}
_XML_START: Final = re.compile(rb"(\xef\xbb\xbf)?\s*<(\?xml|!DOCTYPE|!--|rdf:RDF|[A-Za-z]+:RDF)")
_LINE: Final = re.compile(r":(\d+):\d+:")
_LANGUAGES: Final = (None, "en")


def read_graph(path: Path) -> Graph:
    """Turtle or RDF/XML, by the file name extension, otherwise by how the content starts."""
    content = read_bytes(path)
    kind = _FORMATS.get(path.suffix.lower()) or ("xml" if _XML_START.match(content) else "turtle")
    data = content if kind == "xml" else decode(content, path.name)
    graph = Graph(bind_namespaces="none")
    try:
        with _quiet():
            graph.parse(data=data, format=kind, publicID=_BASE)
    except Exception as error:  # parsers raise any kind of error for a broken file
        if isinstance(error, IndexError | AssertionError) and isinstance(data, str):  # it ran off the end
            last = data.rstrip().count("\n") + 1
            raise PolicyError(f"{path.name}: line {last}: ends within a statement; is the file whole?") from None
        raise _broken(path.name, kind, error) from None
    if not len(graph):
        raise PolicyError(f"{path.name}: contains no statements; write classes, and what lies below them")
    return graph


def label(graph: Graph, thing: Node) -> str:
    """The name of a thing: its rdfs:label (without a language, then English, then others), else the end of its IRI."""
    if isinstance(thing, Literal):
        return str(thing).strip()
    texts = [text for text in graph.objects(thing, RDFS.label) if isinstance(text, Literal) and text.strip()]
    return min(texts, key=_label_order).strip() if texts else _local_name(thing)


def _label_order(text: Literal) -> tuple[int, str, str]:
    language = text.language and text.language.split("-")[0].lower()
    rank = _LANGUAGES.index(language) if language in _LANGUAGES else len(_LANGUAGES)
    return rank, text.language or "", str(text)


def _local_name(thing: Node) -> str:
    """The last part of an IRI, or all of it if that is empty."""
    return unquote(re.split(r"[#/:]", str(thing))[-1]).strip() or str(thing)


def _broken(where: str, kind: str, error: Any) -> PolicyError:
    syntax = "RDF/XML" if kind == "xml" else "Turtle"
    line = _line(error)
    place = f"{where}: line {line}" if line else where
    reason = _reason(error)
    return PolicyError(f"{place}: is not valid {syntax}{f' ({reason})' if reason else ''}; fix it there or just before")


def _line(error: Any) -> int | None:
    if hasattr(error, "lines"):  # of Turtle: counted from 0
        return int(error.lines) + 1
    if hasattr(error, "getLineNumber"):
        return int(error.getLineNumber() or 0) or None
    found = _LINE.search(str(error))
    return int(found[1]) if found else None


def _reason(error: Any) -> str:
    """The parser's message, without the passage it quotes."""
    if hasattr(error, "getMessage"):
        return str(error.getMessage())
    quoted = re.search(r"Bad syntax \((.*?)\) at \^", str(error), re.DOTALL)
    text = quoted[1] if quoted else _LINE.split(str(error))[-1]
    return " ".join(text.split())[:100]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the parser, which logs unusual numbers with a stack trace."""
    logger = logging.getLogger("rdflib")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
