"""One HTML page with the results of a study: text, tables and embedded pictures."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from shoal.crypto.safe_open import write_file
from shoal.errors import OutputError
from shoal.reproduce.study import Table

_LONGEST_TABLE: Final = 40
"""Rows; a longer table is collapsed."""

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem; }
img { max-width: 100%; height: auto; } figure { margin: 1rem 0; } figcaption, caption { color: #555; text-align: left; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #e5e5e5; text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid #999; }
summary { cursor: pointer; color: #0b5394; margin: .5rem 0; }
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its text, pictures and tables."""

    heading: str
    paragraphs: Sequence[str] = ()
    pictures: Sequence[str] = ()
    """Names of PNG files in the folder of the page."""
    tables: Sequence[Table] = ()


def write_page(folder: Path, *, title: str, sections: Sequence[Section]) -> Path:
    """Write the tables of all sections, and ``index.html`` with the pictures of the folder embedded."""
    for section in sections:
        for table in section.tables:
            table.write(folder)
    body = "\n".join(_section(folder, section) for section in sections)
    page = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )
    path = folder / "index.html"
    try:
        write_file(path, page)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from None
    return path


def _section(folder: Path, section: Section) -> str:
    parts = [f"<section>\n<h2>{escape(section.heading)}</h2>"]
    parts += [f"<p>{escape(paragraph)}</p>" for paragraph in section.paragraphs]
    parts += [_picture(folder, name, section.heading) for name in section.pictures]
    parts += [_table(table) for table in section.tables]
    return "\n".join([*parts, "</section>"])


def _picture(folder: Path, name: str, alt: str) -> str:
    content = base64.b64encode((folder / name).read_bytes()).decode()
    link = f'<a href="{escape(name)}">{escape(name)}</a>'
    image = f'<img src="data:image/png;base64,{content}" alt="{escape(alt)}">'
    return f"<figure>{image}<figcaption>{link}</figcaption></figure>"


def _table(table: Table) -> str:
    link = f'<a href="{escape(table.file)}">{escape(table.file)}</a>'
    head = "".join(f"<th>{escape(column.replace('_', ' '))}</th>" for column in table.columns)
    lines = table.lines()
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    whole = (
        f'<div class="wide"><table id="{escape(table.name)}">\n<caption>{escape(table.caption)} ({link})</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )
    if len(lines) <= _LONGEST_TABLE:
        return whole
    return f"<details>\n<summary>{escape(table.caption)}: {len(lines)} rows</summary>\n{whole}\n</details>"
