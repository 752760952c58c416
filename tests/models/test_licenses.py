"""Names and addresses of licenses."""

from __future__ import annotations

import json

import pytest

from kbkit.models import License
from kbkit.models.licenses import NAME_LENGTH, TEXT_LENGTH, standard_name


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("The MIT License (MIT)", "MIT"),
        ("mit or apache-2.0", "MIT OR Apache-2.0"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("GNU General Public License v3 or later (GPLv3+)", "GPL-3.0-or-later"),
        ("GPLv3", "GPL-3.0"),
        ("Python Software Foundation License Version 2", "PSF-2.0"),
        ("Creative Commons Attribution-ShareAlike 3.0 Unported License", "CC-BY-SA-3.0"),
        ("CC BY-NC-ND 4.0", "CC-BY-NC-ND-4.0"),
        ("BSD License", "BSD License"),  # of which there are several
        ("All rights reserved", "All rights reserved"),
    ],
)
def test_license_names(statement, name):
    assert License.stated(statement).name == name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://creativecommons.org/licenses/by-nc-sa/3.0/us/deed.en", "CC-BY-NC-SA-3.0-US"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
        ("https://spdx.org/licenses/MIT.html", "MIT"),
        ("https://opensource.org/license/apache-2-0", "Apache-2.0"),
        ("https://www.gnu.org/licenses/fdl-1.3.html", "GFDL-1.3"),
        ("https://web.archive.org/web/2/http://creativecommons.org/licenses/by/4.0/", "CC-BY-4.0"),
        ("https://example.org/terms", ""),
    ],
)
def test_license_addresses(url, name):
    assert License.stated(url=url) == License(name, url)
    assert License.stated(url) == License(name, url)


def test_license_links():
    assert License.stated("MIT", "https://h/LICENSE").link == "https://h/LICENSE"
    assert License.stated("MIT").link == "https://spdx.org/licenses/MIT.html"
    assert License.stated("CC BY-SA 4.0").link == "https://creativecommons.org/licenses/by-sa/4.0/"
    assert License.stated("MIT OR Apache-2.0").link == ""
    assert License.stated("Terms of ours").link == ""


UNSAFE = """
javascript:alert(1) data:text/html,x //h/x /license https://u:p@h/ http://[::1 https://h/"><b>
https://
"""


@pytest.mark.parametrize(
    "url", [*UNSAFE.split(), "https://h/a b", "https://h/\u202e", "https://h/" + "a" * 600]
)
def test_unsafe_addresses_are_left_out(url):
    assert License.stated(url=url).url == ""


def test_license_texts_are_one_bounded_line():
    huge = License.stated("x " * 500_000, "", "y\n" * 500_000)
    assert len(huge.name) <= NAME_LENGTH
    assert len(huge.attribution) <= TEXT_LENGTH
    odd = License.stated("a\n\x00b\u202ec\ud800", attribution="d\u2028e")
    assert (odd.name, odd.attribution) == ("a bc", "d e")
    assert not License.stated("javascript:alert(1)")
    assert standard_name("(" * 150) == ""


def test_license_of_metadata():
    license_ = License.stated("mit", "https://h/", "© Me")
    metadata = license_.to_metadata()
    assert License.of(metadata) == license_
    assert json.loads(json.dumps(metadata)) == metadata
    assert License.of({"license": {"name": "MIT License", "url": "https://h/"}}).name == "MIT"
    assert License.of({"copyright": "© Me"}).attribution == "© Me"
    assert License.of({"license": 7, "license_url": ["x"], "attribution": None}) == License()


def test_license_name_is_completed_with_its_own_address():
    own, other = License("A", attribution="me"), License("B", "https://b/", "you")
    assert own.or_else(other) == own
    assert License(attribution="me").or_else(other) == License("B", "https://b/", "me")
