"""From a knowledge base to a site in one call."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kbkit.export.export import OnProgress, export_pages
from kbkit.export.facts import Facts
from kbkit.export.mkdocs.project import DOCS, build_site, write_project
from kbkit.export.report import ExportReport
from kbkit.models import Document, KnowledgeBaseInfo, Progress
from kbkit.recipes import SiteSpec


def export_site(
    info: KnowledgeBaseInfo,
    documents: Iterable[Document],
    directory: Path,
    site: SiteSpec,
    *,
    facts: Facts | None = None,
    build: bool = True,
    on_progress: OnProgress | None = None,
) -> ExportReport:
    """Write a knowledge base as a MkDocs project and build it.

    Args:
        info: What the registry knows of the knowledge base.
        documents: Its documents; see `export_pages`.
        directory: Folder of the project: ``mkdocs.yml``, ``docs`` and, once built, ``site``.
        site: What the site says.
        facts: What else the pages tell.
        build: Build the HTML, in MkDocs' strict mode.
        on_progress: Called after each page (stage ``export``), and before and after the build
            (stage ``site``).

    Raises:
        ExportError: Something cannot be written, or MkDocs failed.
        ConflictError: Another process exports into the same folder.
    """
    write_project(directory, info, site)
    report = export_pages(info, documents, directory / DOCS, site, on_progress, facts=facts)
    report = replace(report, directory=directory)
    return build_html(report, on_progress) if build else report


def build_html(report: ExportReport, on_progress: OnProgress | None = None) -> ExportReport:
    """Build the HTML of a project that `export_site` wrote.

    Args:
        report: What that gave.
        on_progress: Called before and after the build (stage ``site``).

    Raises:
        ExportError: MkDocs failed.
    """
    start = time.perf_counter()
    if on_progress:
        on_progress(Progress("site", 0, 1, "mkdocs build"))
    html = build_site(report.directory)
    if on_progress:
        on_progress(Progress("site", 1, 1, str(html)))
    seconds = {**report.seconds, "site": time.perf_counter() - start}
    return replace(report, html=html, seconds=seconds)
