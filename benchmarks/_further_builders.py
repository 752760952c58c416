"""Sites by generators that kbkit had no rules for when they were first measured."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from _program_builders import chapters
from _site_builders import sphinx
from _site_maker import Maker, escaped

_ASYNC, _LODASH = "async/dist/async.js", "lodash/lodash.js"


def pdoc3(maker: Maker) -> None:
    programs = maker.python("pdoc3", "httpx", "pygments", place="venv-pdoc3")
    out = maker.fresh("pdoc3")
    maker.run(programs / "pdoc", "--html --skip-errors -o", out, "httpx pygments")
    maker.keep("pdoc3", out)


def docutils(maker: Maker) -> None:
    programs = maker.python("docutils", "pygments")
    work, out = maker.fresh("docutils-source"), maker.fresh("docutils-out")
    maker.run(programs / "pip", "download --quiet --no-deps --no-binary=:all: docutils", at=work)
    with tarfile.open(next(work.glob("*.tar.gz"))) as archive:
        archive.extractall(work, filter="data")
    for page in sorted(work.glob("docutils-*/docs/**/*.rst")):
        place = out / f"{page.parent.name}-{page.stem}.html"
        writer = "html4" if page.parent.name == "dev" else "html5"
        maker.run(programs / "docutils", f"--writer={writer}", "--halt=5 -q", page, place)
    maker.keep("docutils", out)


def zensical(maker: Maker) -> None:
    programs = maker.python("zensical")
    work = maker.fresh("zensical")
    maker.node_markdown(work / "docs")
    (work / "zensical.toml").write_text(
        '[project]\nsite_name = "Manual"\nsite_url = "https://docs.example/"\n', "utf-8"
    )
    maker.run(programs / "zensical", "build", at=work)
    maker.keep("zensical", work / "site")


def honkit(maker: Maker) -> None:
    project = maker.npm("honkit", name="honkit")
    work = maker.fresh("honkit")
    pages = chapters(maker, work)
    for page in pages:
        page.write_text(re.sub(r"\{([{%])", r"{ \1", page.read_text("utf-8")), "utf-8")
    for page in set(work.glob("*.md")) - set(pages):
        page.unlink()
    (work / "README.md").write_text("# Manual\n\nAll that Node has.\n", "utf-8")
    summary = "".join(f"* [{page.stem}]({page.name})\n" for page in pages)
    (work / "SUMMARY.md").write_text(f"# Summary\n\n{summary}", "utf-8")
    maker.run(project / "node_modules/.bin/honkit", "build", work, work / "out", at=project)
    maker.keep("honkit", work / "out")


def starlight(maker: Maker) -> None:
    project = maker.npm("astro~5", "@astrojs/starlight~0.36", "sharp", name="starlight")
    content = project / "src/content/docs"
    shutil.rmtree(content, ignore_errors=True)
    maker.node_markdown(content)
    for page in content.glob("*.md"):
        text = re.sub(r"\A# .*\n", "", page.read_text("utf-8"))
        page.write_text(f"---\ntitle: {page.stem}\n---\n{text}", "utf-8")
    (project / "src/content.config.ts").write_text(
        "import { defineCollection } from 'astro:content';\n"
        "import { docsLoader } from '@astrojs/starlight/loaders';\n"
        "import { docsSchema } from '@astrojs/starlight/schema';\n"
        "export const collections = {\n"
        "  docs: defineCollection({ loader: docsLoader(), schema: docsSchema() }),\n};\n",
        "utf-8",
    )
    (project / "astro.config.mjs").write_text(
        "import { defineConfig } from 'astro/config';\n"
        "import starlight from '@astrojs/starlight';\n"
        "export default defineConfig({ site: 'https://docs.example',\n"
        "  integrations: [starlight({ title: 'Manual', pagefind: false })] });\n",
        "utf-8",
    )
    maker.run(
        project / "node_modules/.bin/astro", "build", at=project, ASTRO_TELEMETRY_DISABLED="1"
    )
    maker.keep("starlight", project / "dist")


def vuepress(maker: Maker) -> None:
    project = maker.npm(
        "vuepress~2.0.0-rc.26",
        "@vuepress/bundler-vite~2.0.0-rc.26",
        "@vuepress/theme-default~2.0.0-rc.115",
        "sass-embedded",
        "vue",
        name="vuepress",
    )
    work = project / "docs"
    shutil.rmtree(work, ignore_errors=True)
    maker.node_markdown(work)
    for page in work.glob("*.md"):
        page.write_text(escaped(page), "utf-8")
    (work / "index.md").rename(work / "README.md")
    (work / ".vuepress").mkdir()
    sidebar = json.dumps([f"/{one.name}" for one in sorted(work.glob("*.md"))])
    (work / ".vuepress/config.js").write_text(
        "import { viteBundler } from '@vuepress/bundler-vite'\n"
        "import { defaultTheme } from '@vuepress/theme-default'\n"
        "export default { title: 'Manual', bundler: viteBundler(), theme: defaultTheme({ sidebar: "
        f"{sidebar} }}) }}\n",
        "utf-8",
    )
    maker.run(project / "node_modules/.bin/vuepress", "build", work, at=project)
    maker.keep("vuepress", work / ".vuepress/dist")


def _jsdoc(maker: Maker, name: str, theme: str, *libraries: str) -> None:
    """The API of libraries by JSDoc with another template."""
    project = maker.npm(
        "jsdoc", "docdash", "clean-jsdoc-theme~4", "async", "lodash", name="docdash"
    )
    out = maker.fresh(name)
    sources = [f"node_modules/{library}" for library in libraries]
    maker.run(
        project / "node_modules/.bin/jsdoc",
        "-d",
        out,
        "-t",
        f"node_modules/{theme}",
        *sources,
        at=project,
    )
    maker.keep(name, out)


def documentation(maker: Maker) -> None:
    project = maker.npm("documentation", "async", name="documentation")
    out = maker.fresh("documentation")
    maker.run(
        project / "node_modules/.bin/documentation",
        "build node_modules/async/dist/async.mjs -f html -o",
        out,
        at=project,
    )
    maker.keep("documentation", out)


def esdoc(maker: Maker) -> None:
    project = maker.npm("esdoc", "esdoc-standard-plugin", "async", name="esdoc")
    out = maker.fresh("esdoc")
    (out / "esdoc.json").write_text(
        json.dumps(
            {
                "source": str(project / "node_modules/async"),
                "destination": str(out / "html"),
                "excludes": ["dist", "bower"],
                "plugins": [{"name": "esdoc-standard-plugin"}],
            }
        ),
        "utf-8",
    )
    maker.run(project / "node_modules/.bin/esdoc", "-c", out / "esdoc.json", at=project)
    maker.keep("esdoc", out / "html")


def latex2html(maker: Maker) -> None:
    out = maker.fresh("latex2html")
    pages = chapters(maker, out / "text")[:8]
    maker.run("pandoc -f gfm -t latex -s --no-highlight -o", out / "manual.tex", *pages)
    text = (out / "manual.tex").read_text("utf-8")
    _, begin, body = text.partition("\\begin{document}")
    head = "\\documentclass{article}\n\\usepackage{html,hyperref,longtable}\n"
    body = body.replace("\\texorpdfstring", "\\firstof")  # else it writes both its arguments
    head += "\\newcommand{\\firstof}[2]{#1}\n"
    body = re.sub(r"\\tightlist|\\(?:toprule|midrule|bottomrule)(?:\\noalign\{\})?", "", body)
    body = re.sub(r"\\(?:begin|end)\{(?:Shaded|Highlighting)\}(?:\[\])?", "", body)
    (out / "manual.tex").write_text(head + begin + body, "utf-8")
    maker.run(
        "latex2html -dir",
        out / "html",
        "-mkdir -no_math -no_images -split 4 -info 0 manual.tex",
        at=out,
    )
    maker.keep("latex2html", out / "html")


def _manual_pages(maker: Maker) -> list[Path]:
    """Return manual pages of system calls and of the C library."""
    folder = maker.debian("manpages-dev") / "usr/share/man"
    found = [page for part in ("man2", "man3") for page in sorted((folder / part).glob("*.gz"))]
    return [page for page in found if page.stat().st_size > 1_500][:: max(1, len(found) // 200)]


def groff(maker: Maker) -> None:
    out = maker.fresh("groff")
    for page in _manual_pages(maker):
        place = out / f"{page.stem}.html"
        maker.run('sh -c \'gzip -dc "$0" | groff -mandoc -Thtml -t > "$1"\'', page, place)
    maker.keep("groff-man", out)


def mandoc(maker: Maker) -> None:
    out = maker.fresh("mandoc")
    for page in _manual_pages(maker):
        place = out / f"{page.stem}.html"
        maker.run('sh -c \'gzip -dc "$0" | mandoc -Thtml -Oman=%N.%S.html > "$1"\'', page, place)
    maker.keep("mandoc", out)


def pod2html(maker: Maker) -> None:
    out = maker.fresh("pod2html")
    folder = maker.debian("perl-doc") / "usr/share/perl"
    pages = [page for page in sorted(folder.glob("*/pod/perl*.pod")) if "delta" not in page.stem]
    for page in pages[:90]:
        maker.run("pod2html", f"--infile={page}", f"--outfile={out / page.stem}.html", at=out)
    maker.keep("pod2html", out)


def pandoc(maker: Maker) -> None:
    out = maker.fresh("pandoc")
    (out / "html").mkdir()
    for page in chapters(maker, out / "text"):
        maker.run(
            "pandoc -f gfm -t html5 -s --toc --number-sections --metadata",
            f"title={page.stem}",
            "-o",
            out / "html" / f"{page.stem}.html",
            page,
        )
    maker.keep("pandoc", out / "html")


_ANTORA_PAGE = """<!DOCTYPE html><html lang="en"><head>
<title>{{{detag (or page.title "Untitled")}}} ::
{{site.title}}</title><link rel="canonical" href="{{{page.url}}}"></head><body class="article">
<header class="header"><nav class="navbar"><a class="navbar-item" href="/">{{site.title}}</a>
<a class="navbar-item" href="#">Products</a></nav></header><div class="body">
<div class="nav-container"><aside class="nav"><div class="panels"><nav class="nav-menu">{{#each
page.navigation}}<ul class="nav-list">{{#each items}}<li class="nav-item"><a class="nav-link" href=
"{{{url}}}">{{{content}}}</a></li>{{/each}}</ul>{{/each}}</nav></div></aside></div>
<main class="article"><div class="toolbar" role="navigation"><nav class="breadcrumbs"><ul>
{{#each page.breadcrumbs}}<li>{{{content}}}</li>{{/each}}</ul></nav><div class="edit-this-page">
<a href="{{page.editUrl}}">Edit this Page</a></div></div><div class="content">
<aside class="toc sidebar" data-title="Contents"><div class="toc-menu"></div></aside>
<article class="doc"><h1 class="page">{{{page.title}}}</h1>{{{page.contents}}}
<nav class="pagination">{{#with page.previous}}<span class="prev"><a href="{{{url}}}">{{{content}}}
</a></span>{{/with}}{{#with page.next}}<span class="next"><a href="{{{url}}}">{{{content}}}</a>
</span>{{/with}}</nav></article></div></main></div><footer class="footer"><p>This page was built
with a small user interface.</p></footer></body></html>"""
_ANTORA_HELPERS = {
    "detag": "module.exports = (html) => html && html.replace(/<[^>]+>/g, '')",
    "or": "module.exports = (...all) => all.slice(0, -1).find(Boolean)",
}


def antora(maker: Maker) -> None:
    """Node's manual by Antora, in a page like that of Antora's default interface."""
    project = maker.npm("antora", name="antora")
    work = maker.fresh("antora")
    pages = work / "docs/modules/ROOT/pages"
    pages.mkdir(parents=True)
    names = []
    for page in chapters(maker, work / "text"):
        maker.run(
            "pandoc -f gfm -t asciidoc --shift-heading-level-by=-1 -s -o",
            pages / f"{page.stem}.adoc",
            page,
        )
        names.append(page.stem)
    (pages / "index.adoc").write_text(
        "= Manual\n\nAll.\n\n" + "".join(f"* xref:{one}.adoc[]\n" for one in names), "utf-8"
    )
    (work / "docs/modules/ROOT/nav.adoc").write_text(
        "".join(f"* xref:{one}.adoc[]\n" for one in names), "utf-8"
    )
    (work / "docs/antora.yml").write_text(
        "name: manual\ntitle: Manual\nversion: ~\nnav: [modules/ROOT/nav.adoc]\n", "utf-8"
    )
    face = work / "face"
    for part in ("layouts", "helpers"):
        (face / part).mkdir(parents=True)
    for layout in ("default", "404"):
        (face / f"layouts/{layout}.hbs").write_text(_ANTORA_PAGE, "utf-8")
    for name, code in _ANTORA_HELPERS.items():
        (face / f"helpers/{name}.js").write_text(f"'use strict'\n{code}\n", "utf-8")
    (work / "playbook.yml").write_text(
        "site: {title: Node, url: 'https://docs.example', start_page: manual::index.adoc}\n"
        "content: {sources: [{url: ., branches: HEAD, start_path: docs}]}\n"
        "ui: {bundle: {url: ./face}}\n",
        "utf-8",
    )
    author = ("-c", "user.name=maker", "-c", "user.email=maker@example.org")
    maker.run("git init -q", at=work)
    maker.run("git add docs", at=work)
    maker.run("git", *author, "commit -q -m text", at=work)
    maker.run(
        project / "node_modules/.bin/antora", "--to-dir", work / "html", "playbook.yml", at=work
    )
    maker.keep("antora", work / "html")


_OCAML = ("astring", "fmt", "cmdliner", "lwt", "re")


def odoc(maker: Maker) -> None:
    """Libraries of OCaml by odoc; compiled twice because modules refer to each other."""
    out = maker.fresh("odoc")
    program = maker.debian("ocaml-odoc") / "usr/bin/odoc"
    for name in _OCAML:
        library = next((maker.debian(f"lib{name}-ocaml-dev") / "usr/lib/ocaml").glob(name))
        (out / name).mkdir()
        known = [part for one in _OCAML if (out / one).is_dir() for part in ("-I", out / one)]
        interfaces = sorted(library.glob("*.cmti"))
        for interface in (*interfaces, *interfaces):
            target = out / name / f"{interface.stem}.odoc"
            maker.attempt(program, "compile --package", name, *known, interface, "-o", target)
    for compiled in sorted(out.glob("*/*.odoc")):
        linked = compiled.with_suffix(".odocl")
        known = [part for one in _OCAML for part in ("-I", out / one)]
        maker.attempt(program, "link", *known, compiled, "-o", linked)
        if linked.is_file():
            maker.attempt(program, "html-generate -o", out / "html", linked)
    maker.keep("odoc", out / "html")


FURTHER: dict[str, Callable[[Maker], None]] = {
    "rtd": lambda maker: sphinx(maker, "rtd", "sphinx_rtd_theme", ["howto"]),
    "immaterial": lambda maker: sphinx(
        maker,
        "immaterial",
        "sphinx_immaterial",
        ["tutorial"],
        extensions=("sphinx_immaterial",),
        options={"font": False},
    ),
    "haiku": lambda maker: sphinx(maker, "haiku", "haiku", ["faq", "using"], package=""),
    "bizstyle": lambda maker: sphinx(maker, "bizstyle", "bizstyle", ["extending"], package=""),
    "pdoc3": pdoc3,
    "docutils": docutils,
    "zensical": zensical,
    "honkit": honkit,
    "starlight": starlight,
    "vuepress": vuepress,
    "docdash": lambda maker: _jsdoc(maker, "docdash", "docdash", _ASYNC, _LODASH),
    "clean-jsdoc": lambda maker: _jsdoc(maker, "clean-jsdoc", "clean-jsdoc-theme", _ASYNC),
    "documentation": documentation,
    "esdoc": esdoc,
    "latex2html": latex2html,
    "groff-man": groff,
    "mandoc": mandoc,
    "pod2html": pod2html,
    "pandoc": pandoc,
    "odoc": odoc,
    "antora": antora,
}
