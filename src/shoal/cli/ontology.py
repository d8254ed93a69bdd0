"""`shoal ontology`: check an ontology before it is used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

ontology = App(
    name="ontology", help="Check an ontology, or a table that serves as one.", help_format="plaintext"
)  # fmt: skip


@ontology.command
def check(
    file: Path | None = None,
    *,
    values: Path | None = None,
    column: str | None = None,
    attribute: str | None = None,
    value: str | None = None,
    properties: Annotated[
        list[str] | None, Parameter(name=["--properties", "--property"], consume_multiple=True, negative="")
    ] = None,
    is_a: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Report what is unreachable or ambiguous in an ontology, and which values of a file it does not list.

    Nothing is written. Exit code 0 when all values are known (or no file of data is given), 1 when some are not or the
    data cannot be read, 2 when the ontology itself is wrong. For unknown values the nearest known ones are proposed; an
    unknown text is shown only if several rows have it and it resembles a known one; otherwise only its row is named.

    Examples:

        shoal ontology check devices.ttl

        shoal ontology check devices.ttl --values data.csv --column device

        shoal ontology check list.csv.gz --value model --is-a brand --properties os

        shoal ontology check --values data.parquet --column device   (the shipped one)

    Parameters
    ----------
    file
        RDF (.ttl, .nt, .owl, .rdf, .xml) or a table (CSV, also compressed, or Parquet); left out, the device ontology
        that comes with shoal.
    values
        A file of data (CSV, also compressed, or Parquet) whose values are looked up.
    column
        The column of these data.
    attribute
        The attribute that this column holds, where the ontology has several.
    value
        Of a table: the column of values.
    properties
        Of a table: columns of aggregation properties, the most important first.
    is_a
        Of a table: columns of classes, from the finest to the coarsest.
    as_json
        Print the findings as JSON.
    """
    import orjson

    from shoal.hierarchies.ontology.check import check_ontology, read_ontology_file
    from shoal.hierarchies.ontology.tables import table_shape

    shape = table_shape(value or "", properties or (), is_a or (), None) if value or properties or is_a else None
    findings = check_ontology(read_ontology_file(file, shape), values=values, column=column, attribute=attribute)
    is_fit = all(finding.level != "wrong" for finding in findings)
    if as_json:
        content = {"ok": is_fit, "findings": [finding.to_dict() for finding in findings]}
        print(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode(), file=sys.stdout)
    else:
        marks = {"good": "ok   ", "look": "look ", "wrong": "WRONG"}
        for finding in findings:
            print(f"{marks[finding.level]}  {finding.topic:<12} {finding.sentence}", file=sys.stdout)
        print("nothing is wrong" if is_fit else "some values are unknown; see WRONG above", file=sys.stdout)
    return 0 if is_fit else 1
