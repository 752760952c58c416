"""What the base install leaves out: every ability says in one line what it needs."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import get_args

import pytest

import kbkit
from kbkit.errors import MissingExtraError
from kbkit.extras import Extra, extra

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
NAME = re.compile(r"[\w-]+")

SETUP = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None  # what Python has for a package that is not there
import kbkit
ws = kbkit.open("kb")
kb = ws.create("food") if "food" not in ws else ws["food"]
"""
FILES = """
report = kb.ingest(kbkit.FilesSource(path={!r}))
for problem in [*report.skipped, *report.failed]:
    print(problem.reason)
"""
ABILITIES = {
    "a DOCX file": ("mammoth", FILES.format("a.docx"), "office", "Reading DOCX needs mammoth"),
    "a PPTX file": ("pptx", FILES.format("a.pptx"), "office", "Reading PPTX needs python-pptx"),
    "an XLSX file": ("openpyxl", FILES.format("a.xlsx"), "office", "Reading XLSX needs openpyxl"),
    "a PDF file": ("pypdfium2", FILES.format("a.pdf"), "office", "Reading PDF needs pypdfium2"),
    "a plot": ("altair", "kb.{plot}", "plots", "A plot needs altair"),
    "a plot's picture": (
        "vl_convert", "kb.{plot}.svg()", "plots", "The SVG of a plot needs vl-convert-python"
    ),
    "a panel": (
        "anywidget", "from kbkit.panels import SearchPanel", "panels", "A panel needs anywidget"
    ),
    "a site": ("sphinx", "kb.export('out')", "site", "The search of an exported site needs sphinx"),
    "an ONNX model": (
        "onnxruntime",
        "from kbkit.recipes import *\n"
        "ws.create('o', spec=KnowledgeBaseSpec(embedding=OnnxEmbedding(preset='minilm')))"
        ".add('Bread', 'Bread is baked.')",
        "onnx",
        "The onnx embedder needs onnxruntime",
    ),
    "Firecrawl": (
        "firecrawl",
        "report = kb.ingest(kbkit.PageSource(url='https://docs.example.org/', "
        "provider='firecrawl'))\nfor p in [*report.skipped, *report.failed]: print(p.reason)",
        "firecrawl",
        "The provider firecrawl needs firecrawl-py",
    ),
    "a recipe's notebook": (
        "nbformat",
        "from kbkit.notebook import write_notebook\nwrite_notebook('r.yaml')",
        "lab",
        "Writing a notebook needs nbformat",
    ),
    "running a notebook": (
        "nbclient",
        "from kbkit.notebook import run_notebook\nrun_notebook('r.ipynb')",
        "lab",
        "Running a notebook needs Jupyter",
    ),
    "the dashboard": (
        "voila",
        "from kbkit.serving import serve_dashboard\nserve_dashboard('kb')",
        "lab",
        "Serving the dashboard needs voila",
    ),
}  # fmt: skip


def packages_of(name: str) -> set[str]:
    return {NAME.match(line)[0] for line in EXTRAS[name] if not line.startswith("kbkit[")}
