"""Markdown, text, HTML and reStructuredText files, and Jupyter notebooks."""

from __future__ import annotations

import json
import re
from typing import Any

from kbkit.sources.decode import decode
from kbkit.sources.markdown import commonmark
from kbkit.sources.parts import Part, one_line, stem, with_front_matter
from kbkit.sources.untrusted import UnreadableError
from kbkit.text.markdown.structure import document_title
from kbkit.text.markdown.writing import fence


def read_markdown(data: bytes, name: str) -> list[Part]:
    """Read Markdown of any dialect; front matter becomes title, tags and metadata."""
    return [with_front_matter(decode(data, markup=False), name, markdown=True)]


def read_text(data: bytes, name: str) -> list[Part]:
    return [with_front_matter(decode(data, markup=False), name)]


def read_html(data: bytes, name: str) -> list[Part]:
    """Read the content of a page; relative links stay relative."""
    from kbkit.sources.html.extract import extract

    page = extract(decode(data), "", alone=False)
    if not page.content:
        raise UnreadableError(page.reason or "no text")
    title = page.title or stem(name)
    return [Part(title, page.content, metadata=page.metadata, template=page.template)]


def read_rst(data: bytes, name: str) -> list[Part]:
    from kbkit.sources.restructured_text import markdown_of_rst

    text = decode(data, markup=False).replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    content = markdown_of_rst(text)
    title = one_line(document_title(content)) or stem(name)
    return [Part(title, content + "\n" if content else "", metadata={"format": "rst"})]


_MAX_CELLS = 20_000
_MAX_OUTPUT = 5_000  # characters of each output
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b-\x1f\x7f]")


def read_notebook(data: bytes, name: str) -> list[Part]:
    """Read the cells of a notebook (formats 3 and 4) with their output."""
    try:
        loaded = json.loads(decode(data, markup=False))
    except ValueError:
        raise UnreadableError("broken: not the JSON of a notebook") from None
    notebook = loaded if isinstance(loaded, dict) else {}
    cells = notebook.get("cells")
    if cells is None and isinstance(notebook.get("worksheets"), list):
        cells = [
            cell
            for sheet in notebook["worksheets"]
            if isinstance(sheet, dict)
            for cell in _list(sheet.get("cells"))
        ]
    if not isinstance(cells, list):
        raise UnreadableError("broken: no notebook (it has no cells)")
    if len(cells) > _MAX_CELLS:
        raise UnreadableError(f"more than {_MAX_CELLS:,} cells")
    language = _language(notebook)
    blocks: list[str] = []
    for cell in cells:
        if isinstance(cell, dict):
            blocks.extend(_cell(cell, language))
    content = "\n\n".join(blocks)
    title = one_line(document_title(content)) or stem(name)
    metadata: dict[str, Any] = {"format": "notebook"}
    if language:
        metadata["language"] = language
    return [Part(title, content + "\n" if content else "", metadata=metadata)]


def _cell(cell: dict[str, Any], language: str) -> list[str]:
    kind = cell.get("cell_type")
    source = _joined(cell.get("source", cell.get("input", ""))).strip("\n")
    if kind == "markdown":
        return [commonmark(source)] if source.strip() else []
    if kind == "heading":
        level = cell.get("level")
        level = level if isinstance(level, int) and 1 <= level <= 6 else 1
        return [f"{'#' * level} {one_line(source)}"] if source.strip() else []
    blocks = [fence(source, language if kind == "code" else "")] if source.strip() else []
    if kind == "code":
        for output in _list(cell.get("outputs")):
            if isinstance(output, dict):
                blocks.extend(_output(output))
    return blocks


def _output(output: dict[str, Any]) -> list[str]:
    kind = output.get("output_type")
    if kind == "stream":
        text = _joined(output.get("text"))
    elif kind in ("error", "pyerr"):
        text = "\n".join(_joined(line) for line in _list(output.get("traceback")))
        text = text or f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    else:
        data = output.get("data", output)
        data = data if isinstance(data, dict) else {}
        if markdown := _joined(data.get("text/markdown")).strip():
            return [_short(markdown)]
        text = _joined(data.get("text/plain", data.get("text", "")))
    text = "\n".join(map(_last_state, text.replace("\r\n", "\n").split("\n")))
    text = _ANSI.sub("", text).strip("\n")
    return [fence(_short(text), "text")] if text.strip() else []


def _last_state(line: str) -> str:
    """Return the last state of a line that a progress bar rewrites after carriage returns."""
    return line.rstrip("\r").rpartition("\r")[2]


def _short(text: str) -> str:
    return text if len(text) <= _MAX_OUTPUT else text[:_MAX_OUTPUT].rstrip() + "\n…"


def _language(notebook: dict[str, Any]) -> str:
    about = notebook.get("metadata")
    about = about if isinstance(about, dict) else {}
    for part, key in (("language_info", "name"), ("kernelspec", "language")):
        inner = about.get(part)
        if isinstance(inner, dict) and re.fullmatch(r"[\w+#-]{1,30}", str(inner.get(key, ""))):
            return str(inner[key]).lower()
    return "python"


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return "".join(piece for piece in value if isinstance(piece, str))
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
