"""Make sites by many documentation generators, to measure how faithfully kbkit reads them.

    python benchmarks/generated.py FOLDER [NAME ...]

Each set is a folder of HTML under FOLDER. Needs apt-get with dpkg, npm and pip; sets that they
cannot provide are left out, with the reason. The texts come from Debian packages (nodejs-doc,
python3.11-doc); nothing of them goes into the project.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from _further_builders import FURTHER
from _program_builders import PROGRAMS
from _site_builders import BUILT
from _site_maker import Maker

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
    "gtk-doc": ("libgeocode-glib-doc", "../gtk-doc/html/geocode-glib-2"),
    "bind": ("bind9-doc", "bind9-doc/arm"),
    "mkdocs": ("mkdocs-doc", "mkdocs/html"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    maker = Maker(options.folder.resolve())
    builders = {**BUILT, **PROGRAMS, **FURTHER}
    for name in options.names or [*DEBIAN, *builders]:
        if not options.names and (maker.folder / name).is_dir():
            continue
        try:
            if name in DEBIAN:
                package, inside = DEBIAN[name]
                maker.keep(name, maker.debian(package) / "usr/share/doc" / inside)
            else:
                builders[name](maker)
        except (OSError, subprocess.SubprocessError, StopIteration) as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        print(f"{name}: {len(list((maker.folder / name).rglob('*.html'))):,} pages", flush=True)


if __name__ == "__main__":
    main()
