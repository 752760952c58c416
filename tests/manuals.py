"""Manuals of Debian packages that tests read; run as a script, print the packages."""

import os
from pathlib import Path

MANUALS = {
    "python3.11-doc": "python3.11/html/index.html",
    "python-django-doc": "python-django-doc/html/index.html",
    "python-flask-doc": "python-flask-doc/html/index.html",
    "debian-policy": "debian-policy/policy.html/index.html",
    "sqlite3-doc": "sqlite3/index.html",
}
"""The first page of each, below /usr/share/doc."""


def manual(package: str) -> Path:
    """Return the folder of a manual; skip the test, or fail with KBKIT_REQUIRE_DOCS=1, without."""
    import pytest

    page = Path("/usr/share/doc", MANUALS[package])
    if not page.is_file():
        reason = f"needs real documentation; on Debian: apt-get install {package}"
        if os.environ.get("KBKIT_REQUIRE_DOCS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return page.parent


if __name__ == "__main__":
    print("\n".join(MANUALS))
