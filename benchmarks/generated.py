"""Makes sites by many documentation generators, for measuring how faithfully they are read.

    python benchmarks/generated.py FOLDER [NAME ...]

Each set is a folder of HTML under FOLDER. Needs apt-get with dpkg, npm and pip; what one of them
cannot give is left out, with the reason. The built sites are of texts that Debian's packages
bring (nodejs-doc, python3.11-doc); nothing of it goes into the project.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

DEBIAN = {
    "sfml": ("libsfml-doc", "libsfml-dev/html"),
    "ffmpeg-api": ("ffmpeg-doc", "ffmpeg/api"),
    "ffmpeg-manual": ("ffmpeg-doc", "ffmpeg/manual"),
    "rustdoc": ("rust-doc", "rust-doc/html/std"),
    "mdbook": ("rust-doc", "rust-doc/html/reference"),
    "apache": ("apache2-doc", "apache2-doc/manual/en"),
    "bash": ("bash-doc", "bash-doc"),
    "jsoup": ("libjsoup-java-doc", "libjsoup-java/api"),
    "asciidoctor-api": ("asciidoctor-doc", "asciidoctor-doc/html"),
    "qdoc": ("qtbase5-doc-html", "../qt5/doc/qtcore"),
    "bind": ("bind9-doc", "bind9-doc/arm"),
    "mkdocs": ("mkdocs-doc", "mkdocs/html"),
    "git": ("git-doc", "git-doc"),
}
NODE = Path("/usr/share/doc/nodejs/api")
PYTHON = Path("/usr/share/doc/python3.11/html/_sources")
NOT_PAGES = re.compile(r"(^|/)(404|genindex|search|searchindex|print|_print)\.html$")


class Maker:
    """Makes the sets.

    Args:
        folder: Where they go; tools and packages stay beside them, in ``tools``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = folder / "tools"
        self.tools.mkdir(parents=True, exist_ok=True)

    def run(self, *command: str | Path, at: Path | None = None, **environment: str) -> None:
        """Run a program quietly.

        Raises:
            CalledProcessError: It failed; the end of what it said is printed.
        """
        done = subprocess.run(
            [str(part) for part in command], cwd=at or self.tools, capture_output=True, text=True,
            errors="replace", check=False, timeout=900, env={**os.environ, **environment},
        )  # fmt: skip
        if done.returncode:
            print((done.stdout + done.stderr)[-2000:], file=sys.stderr)
            done.check_returncode()

    def debian(self, package: str) -> Path:
        """The files of a Debian package, unpacked and not installed."""
        place = self.tools / "debian" / package
        if not place.is_dir():
            place.mkdir(parents=True)
            self.run("apt-get", "download", package, at=place)
            archive = next(place.glob("*.deb"))
            self.run("dpkg", "-x", archive, place)
            archive.unlink()
        return place

    def python(self, *packages: str) -> Path:
        """The programs of an environment that has some packages of PyPI."""
        place = self.tools / "venv"
        if not place.is_dir():
            venv.create(place, with_pip=True)
        self.run(place / "bin/pip", "install", "--quiet", *packages)
        return place / "bin"

    def npm(self, *packages: str, name: str = "npm") -> Path:
        """The folder of an npm project that has some packages."""
        place = self.tools / name
        place.mkdir(exist_ok=True)
        if not all((place / "node_modules" / one.partition("~")[0]).is_dir() for one in packages):
            wanted = [one.replace("~", "@") for one in packages]
            self.run("npm", "install", "--silent", "--no-audit", "--no-fund", *wanted, at=place)
        return place

    def fresh(self, name: str) -> Path:
        """An empty folder beside the tools."""
        place = self.tools / "work" / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place

    def keep(self, name: str, built: Path) -> None:
        """Copy the pages of a site, and nothing else, to its set."""
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        for page in sorted(built.rglob("*.html")):
            place = page.relative_to(built).as_posix()
            if page.is_file() and not NOT_PAGES.search(place):
                (target / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(page, target / place)


def node_markdown(target: Path) -> None:
    """Node's manual as Markdown that any generator takes."""
    target.mkdir(parents=True, exist_ok=True)
    for page in sorted(NODE.glob("*.md")):
        text = re.sub(r"<!--.*?-->", "", page.read_text("utf-8"), flags=re.DOTALL)
        (target / page.name).write_text(text.lstrip(), "utf-8")


def sphinx(maker: Maker, name: str, theme: str, parts: Sequence[str]) -> None:
    """Parts of Python's manual with a theme of Sphinx."""
    programs = maker.python("sphinx<9", theme.replace("_", "-"))
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
        f"project = 'Manual'\nhtml_theme = {theme!r}\nextensions = ['sphinx.ext.extlinks']\n"
        "extlinks = {one: ('https://example.org/' + one + '/%s', '%s') for one in"
        " ('issue', 'source', 'gh')}\n",
        "utf-8",
    )
    maker.run(programs / "sphinx-build", "-q", "-b", "html", work, work / "out")
    maker.keep(name, work / "out")


def asciidoc_man(maker: Maker) -> None:
    """Manual pages of a library written in AsciiDoc, by Asciidoctor."""
    package = "zeromq3"
    source = maker.fresh("asciidoc-man")
    listed = source / "sources.list"
    listed.write_text("deb-src http://deb.debian.org/debian stable main\n", "utf-8")
    kept = maker.tools / "asciidoc"
    if not kept.is_dir():
        lists = source / "lists"
        (lists / "partial").mkdir(parents=True)
        only = (f"Dir::Etc::sourcelist={listed}", "Dir::Etc::sourceparts=-",
                f"Dir::State::lists={lists}")  # fmt: skip
        options = [part for one in only for part in ("-o", one)]
        maker.run("apt-get", *options, "update")
        maker.run("apt-get", *options, "source", "--download-only", package, at=source)
        with tarfile.open(next(source.glob("*.orig.tar.*"))) as archive:
            archive.extractall(source, filter="data")
        shutil.copytree(next(source.glob("*/doc")), kept)
    project = maker.npm("asciidoctor~2", "@asciidoctor/core~2")
    pages = sorted(kept.glob("*.txt"))
    out = source / "out"
    maker.run(
        project / "node_modules/.bin/asciidoctor", "-b", "html5", "-d", "manpage", "-D", out,
        *[page for page in pages if page.stem != "asciidoc"],
    )  # fmt: skip
    maker.keep("asciidoc-man", out)


def material(maker: Maker) -> None:
    """Node's manual by MkDocs with Material."""
    programs = maker.python("mkdocs-material")
    work = maker.fresh("material")
    node_markdown(work / "docs")
    (work / "mkdocs.yml").write_text(
        "site_name: Manual\ntheme:\n  name: material\n  font: false\n  features: "
        "[content.code.copy, navigation.footer]\nmarkdown_extensions: [admonition, toc:"
        " {permalink: true}]\n".replace("[admonition, toc: {permalink: true}]",
                                        "\n  - admonition\n  - toc:\n      permalink: true"),
        "utf-8",
    )  # fmt: skip
    maker.run(programs / "mkdocs", "build", "-q", at=work)
    maker.keep("material", work / "site")


def vitepress(maker: Maker) -> None:
    """Node's manual by VitePress."""
    project = maker.npm("vitepress")
    work = project / "vitepress-site"
    shutil.rmtree(work, ignore_errors=True)
    node_markdown(work)
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


def escaped(page: Path) -> str:
    """Markdown whose text outside of code has no markup of Vue."""
    pieces = re.split(r"(^ *```.*?^ *```$|`[^`\n]+`)", page.read_text("utf-8"), flags=re.S | re.M)
    return "".join(
        piece if place % 2 else re.sub(r"<(?!https?:)", "&lt;", piece).replace("{{", "{ {")
        for place, piece in enumerate(pieces)
    )


def docusaurus(maker: Maker) -> None:
    """Node's manual by Docusaurus, beside the pages that its template brings."""
    work = maker.tools / "docusaurus"
    if not (work / "node_modules").is_dir():
        shutil.rmtree(work, ignore_errors=True)
        maker.run("npx", "--yes", "create-docusaurus@latest", "docusaurus", "classic",
                  "--javascript", "--package-manager", "npm")  # fmt: skip
    node_markdown(work / "docs/node")
    for page in (work / "docs/node").glob("*.md"):
        page.write_text(escaped(page), "utf-8")
    config = work / "docusaurus.config.js"
    text = config.read_text("utf-8").replace("onBrokenLinks: 'throw'", "onBrokenLinks: 'ignore'")
    if "format: 'detect'" not in text:
        text = text.replace("themeConfig:", "markdown: {format: 'detect'},\n  themeConfig:", 1)
    config.write_text(text, "utf-8")
    maker.run("npm", "run", "build", at=work, DOCUSAURUS_IGNORE_SSG_WARNINGS="true")
    maker.keep("docusaurus", work / "build")


def hugo(maker: Maker) -> None:
    """Node's manual by Hugo with the book theme, which comes as a module of Go."""
    programs = maker.python("hugo")
    work = maker.fresh("hugo")
    node_markdown(work / "content/docs")
    (work / "hugo.toml").write_text(
        "title = 'Manual'\nbaseURL = 'https://docs.example/'\n[module]\n[[module.imports]]\n"
        "path = 'github.com/alex-shpak/hugo-book'\n[markup.goldmark.renderer]\nunsafe = true\n",
        "utf-8",
    )
    for page in (work / "content/docs").glob("*.md"):
        head = f"---\ntitle: {page.stem}\n---\n"
        page.write_text(head + re.sub(r"\{\{(?=[<%])", "{ {", page.read_text("utf-8")), "utf-8")
    maker.run(programs / "hugo", "mod", "init", "example.org/manual", at=work)
    maker.run(programs / "hugo", at=work)
    maker.keep("hugo-book", work / "public")


def typedoc(maker: Maker) -> None:
    """The API of RxJS by TypeDoc."""
    project = maker.npm("typedoc", "typescript", "rxjs")
    out = project / "typedoc-site"
    maker.run(
        project / "node_modules/.bin/typedoc", "--out", out, "--entryPoints",
        "node_modules/rxjs/src/index.ts", "--tsconfig", "node_modules/rxjs/src/tsconfig.base.json",
        "--skipErrorChecking", "--disableGit", "--sourceLinkTemplate", "https://example.org/{path}",
        "--readme", "none", at=project,
    )  # fmt: skip
    maker.keep("typedoc", out)


def jsdoc(maker: Maker) -> None:
    """The API of lodash by JSDoc."""
    project = maker.npm("jsdoc", "lodash", "backbone", "async")
    out = project / "jsdoc-site"
    sources = ("node_modules/async/dist/async.js", "node_modules/lodash/lodash.js")
    maker.run(project / "node_modules/.bin/jsdoc", "-d", out, "-r", *sources, at=project)
    maker.keep("jsdoc", out)


def pdoc(maker: Maker) -> None:
    """The API of some packages by pdoc."""
    programs = maker.python("pdoc", "rich", "httpx")
    out = maker.fresh("pdoc")
    maker.run(programs / "pdoc", "-o", out, "rich", "httpx")
    maker.keep("pdoc", out)


def pydoctor(maker: Maker) -> None:
    """The API of docutils by pydoctor."""
    programs = maker.python("pydoctor", "docutils")
    out = maker.fresh("pydoctor")
    package = next((programs.parent / "lib").glob("python3*/site-packages/docutils"))
    # it fails where a docstring has a mistake, with all pages written
    done = subprocess.run(
        [programs / "pydoctor", "--html-output", out, "--docformat", "restructuredtext", package],
        cwd=out, capture_output=True, check=False, timeout=900,
    )  # fmt: skip
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


def main() -> None:
    """Make the sets that are asked for, or all that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    maker = Maker(options.folder.resolve())
    for name in options.names or [*DEBIAN, *BUILT]:
        if not options.names and (maker.folder / name).is_dir():
            continue
        try:
            if name in DEBIAN:
                package, inside = DEBIAN[name]
                maker.keep(name, maker.debian(package) / "usr/share/doc" / inside)
            else:
                BUILT[name](maker)
        except (OSError, subprocess.SubprocessError, StopIteration) as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        print(f"{name}: {len(list((maker.folder / name).rglob('*.html'))):,} pages", flush=True)


if __name__ == "__main__":
    main()
