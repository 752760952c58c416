"""Sites by generators that come as programs of the system."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from _site_maker import Maker
from _wiki_page import wiki_page

_DOCBOOK = Path("/usr/share/xml/docbook/stylesheet/docbook-xsl")
_BOOSTBOOK = Path("/usr/share/boostbook/xsl")
_CHAPTERS = (
    *("assert", "buffer", "child_process", "cluster", "console", "crypto", "dns", "errors"),
    *("events", "fs", "http", "modules", "net", "os", "path", "process", "stream", "timers"),
    *("tls", "url", "util", "zlib"),
)


def chapters(maker: Maker, target: Path) -> list[Path]:
    """Return chapters of Node's manual as Markdown without links between them."""
    maker.node_markdown(target)
    found = [target / f"{name}.md" for name in _CHAPTERS]
    for page in found:
        text = re.sub(r"\]\((?:[\w-]+\.md)?#", "](#", page.read_text("utf-8"))
        text = re.sub(r"^\[[^\]]+\]: .*$", "", text, flags=re.M)
        page.write_text(re.sub(r"\[([^\]\n]+)\]\[[^\]\n]*\]", r"\1", text), "utf-8")
    return found


def texinfo(maker: Maker) -> None:
    out = maker.fresh("texinfo")
    for name in ("sed", "grep", "diffutils"):
        manual = maker.source(name) / "doc" / f"{name}.texi"
        maker.run("makeinfo --html --split=node --force -o", out / name, manual)
    maker.keep("texinfo", out)


def texi2html(maker: Maker) -> None:
    out = maker.fresh("texi2html")
    manual = maker.source("wget") / "doc/wget.texi"
    maker.run("texi2html --split=section --output", out, manual)
    maker.keep("texi2html", out)


def doxygen(maker: Maker) -> None:
    library, out = maker.source("tinyxml2"), maker.fresh("doxygen")
    options = {
        "PROJECT_NAME": "TinyXML-2",
        "INPUT": f"{library}/tinyxml2.h {library}/readme.md",
        "OUTPUT_DIRECTORY": out,
        "EXTRACT_ALL": "YES",
        "SOURCE_BROWSER": "YES",
        "GENERATE_TREEVIEW": "YES",
        "GENERATE_LATEX": "NO",
        "GENERATE_XML": "YES",
        "QUIET": "YES",
        "USE_MDFILE_AS_MAINPAGE": f"{library}/readme.md",
    }
    (out / "Doxyfile").write_text("".join(f"{a} = {b}\n" for a, b in options.items()), "utf-8")
    maker.run("doxygen", at=out)
    maker.keep("doxygen", out / "html")


def boostbook(maker: Maker) -> None:
    out = maker.fresh("boostbook")
    made = maker.tools / "work/doxygen/xml"
    if not made.is_dir():
        doxygen(maker)
    maker.run("xsltproc -o", out / "all.xml", made / "combine.xslt", made / "index.xml")
    maker.run(
        "xsltproc --stringparam boost.doxygen.header.prefix tinyxml2 -o",
        out / "reference.xml",
        _BOOSTBOOK / "doxygen/doxygen2boostbook.xsl",
        out / "all.xml",
    )
    reference = (out / "reference.xml").read_text("utf-8")
    reference = re.sub(r"^<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*", "", reference, flags=re.S)
    parts = []
    for page in chapters(maker, out / "text")[:6]:
        maker.run("pandoc -f gfm -t docbook4", page, "-o", page.with_suffix(".xml"))
        inner = page.with_suffix(".xml").read_text("utf-8")
        parts.append(re.sub(r"<link\b[^>]*>|</link>", "", inner))
    (out / "library.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<library id="lib" name="Library" dirname="lib">'
        f"<libraryinfo><title>Library</title></libraryinfo>{''.join(parts)}{reference}</library>",
        "utf-8",
    )
    maker.run(
        "xsltproc --nonet -o", out / "docbook.xml", _BOOSTBOOK / "docbook.xsl", out / "library.xml"
    )
    maker.run("xsltproc --nonet -o", f"{out}/html/", _BOOSTBOOK / "html.xsl", out / "docbook.xml")
    maker.keep("boostbook", out / "html")


def docbook(maker: Maker) -> None:
    out = maker.fresh("docbook")
    parts = []
    for page in chapters(maker, out / "text"):
        maker.run("pandoc -f gfm -t docbook4", page, "-o", page.with_suffix(".xml"))
        inner = page.with_suffix(".xml").read_text("utf-8")
        inner = re.sub(r"<link\b[^>]*>|</link>", "", inner)
        # a quotation is a note, and the first section is the chapter
        inner = inner.replace("<blockquote>", "<note>").replace("</blockquote>", "</note>")
        inner = re.sub(r"<section\b", "<chapter", inner, count=1)
        parts.append("</chapter>".join(inner.rsplit("</section>", 1)))
    (out / "book.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<book><title>Manual</title>'
        f"{''.join(parts)}</book>",
        "utf-8",
    )
    maker.run(
        "xsltproc --nonet --stringparam base.dir",
        f"{out}/html/",
        "--stringparam use.id.as.filename 1 --stringparam section.autolabel 1",
        _DOCBOOK / "html/chunk.xsl",
        out / "book.xml",
    )
    maker.keep("docbook", out / "html")


def publican(maker: Maker) -> None:
    """The same book by DocBook's stylesheets for XHTML, as distributions use them."""
    out = maker.fresh("docbook-xhtml")
    book = maker.tools / "work/docbook/book.xml"
    if not book.is_file():
        docbook(maker)
    maker.run(
        "xsltproc --nonet --stringparam base.dir",
        f"{out}/html/",
        "--stringparam chunk.first.sections 1 --stringparam admon.graphics 1",
        "--stringparam chunk.section.depth 2",
        _DOCBOOK / "xhtml-1_1/chunk.xsl",
        book,
    )
    maker.keep("docbook-xhtml", out / "html")


def _ruby() -> list[Path]:
    library = next(Path("/usr/lib/ruby").glob("[0-9]*"))
    names = ("optparse*", "uri*", "net*", "set*", "csv*", "erb*", "logger*", "json*", "psych*")
    return sorted(
        one
        for name in names
        for part in library.glob(name)
        for one in (part.rglob("*.rb") if part.is_dir() else [part])
    )


def yard(maker: Maker) -> None:
    out = maker.fresh("yard")
    maker.run("yardoc --no-save --no-cache --quiet -o", out / "html", "-b", out / "db", *_ruby())
    maker.keep("yard", out / "html")


def rdoc(maker: Maker) -> None:
    out = maker.fresh("rdoc")
    maker.run("rdoc --quiet -o", out / "html", *_ruby(), at=out)
    maker.keep("rdoc", out / "html")


def gi_docgen(maker: Maker) -> None:
    out = maker.fresh("gi-docgen")
    girs = maker.debian("libgirepository1.0-dev") / "usr/share/gir-1.0"
    for package, name in (("libportal-dev", "Xdp-1.0"), ("libgirepository1.0-dev", "GObject-2.0")):
        gir = maker.debian(package) / f"usr/share/gir-1.0/{name}.gir"
        (out / name).mkdir()
        maker.run("gi-docgen generate -q --add-include-path", girs, "--output-dir", out / name, gir)
    maker.keep("gi-docgen", out)


def haddock(maker: Maker) -> None:
    out = maker.fresh("haddock")
    for package in ("split", "dlist", "parallel"):
        library = maker.source(f"haskell-{package}")
        root = library / "src" if (library / "src").is_dir() else library
        modules = [one for one in sorted(root.rglob("[A-Z]*.hs")) if one.stem != "Setup"]
        modules = [one for one in modules if one.relative_to(root).parts[0] in ("Data", "Control")]
        (out / package).mkdir()
        maker.run(
            "haddock --html --odir",
            out / package,
            "--title",
            package,
            f"--optghc=-i{root}",
            "--optghc=-DUSE_CALLSTACK",
            *modules,
            at=root,
        )
    maker.keep("haddock", out)


def javadoc(maker: Maker) -> None:
    out = maker.fresh("javadoc")
    library = maker.source("libcommons-codec-java") / "src/main/java"
    maker.run("javadoc -quiet -Xdoclint:none -d", out, "-sourcepath", library, "-subpackages org")
    maker.keep("javadoc", out)


def mediawiki(maker: Maker) -> None:
    """Chapters of Node's manual as pages of a wiki in MediaWiki's Vector skin."""
    out = maker.fresh("mediawiki")
    pages = chapters(maker, out / "text")
    for page in pages:
        wiki, html = page.with_suffix(".wiki"), page.with_suffix(".inner")
        maker.run("pandoc -f gfm -t mediawiki", page, "-o", wiki)
        maker.run("pandoc -f mediawiki -t html --wrap=none", wiki, "-o", html)
        others = [one.stem for one in pages if one != page]
        text = wiki_page(page.stem, html.read_text("utf-8"), others)
        (out / "html").mkdir(exist_ok=True)
        (out / "html" / f"{page.stem}.html").write_text(text, "utf-8")
    maker.keep("mediawiki", out / "html")


def hugo(maker: Maker) -> None:
    program = maker.debian("hugo") / "usr/bin/hugo"
    libraries = next((maker.debian("libsass1") / "usr/lib").iterdir())
    theme = maker.npm("@cloudflare/hugo-cloudflare-docs") / "node_modules/@cloudflare"
    work = maker.fresh("hugo")
    chapters(maker, work / "content")
    (work / "content/index.md").rename(work / "content/_index.md")
    (work / "themes").mkdir()
    shutil.copytree(theme / "hugo-cloudflare-docs", work / "themes/docs")
    shutil.rmtree(work / "themes/docs/static")  # it has pages of its own
    base = work / "themes/docs/layouts/_default/baseof.html"  # of an older Hugo
    base.write_text(base.read_text("utf-8").replace(".Hugo.Generator", "hugo.Generator"), "utf-8")
    (work / "hugo.toml").write_text(
        "title = 'Manual'\nbaseURL = 'https://docs.example/'\ntheme = 'docs'\n"
        "[markup.goldmark.renderer]\nunsafe = true\n",
        "utf-8",
    )
    for page in (work / "content").glob("*.md"):
        head = f"---\ntitle: {page.stem}\n---\n"
        page.write_text(head + re.sub(r"\{\{(?=[<%])", "{ {", page.read_text("utf-8")), "utf-8")
    maker.run(program, at=work, LD_LIBRARY_PATH=str(libraries))
    maker.keep("hugo", work / "public")


PROGRAMS: dict[str, Callable[[Maker], None]] = {
    "texinfo": texinfo,
    "texi2html": texi2html,
    "doxygen": doxygen,
    "boostbook": boostbook,
    "docbook": docbook,
    "docbook-xhtml": publican,
    "yard": yard,
    "rdoc": rdoc,
    "gi-docgen": gi_docgen,
    "haddock": haddock,
    "javadoc": javadoc,
    "mediawiki": mediawiki,
    "hugo": hugo,
}
