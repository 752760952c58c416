"""A page that takes long to read is read where that can be ended."""

import pytest

from kbkit.sources.html.site_extractor import ExtractTask, extract_bounded
from tests.growth import grows_with


@pytest.mark.slow
def test_many_attributes_take_linear_time():
    def extract(number):
        attributes = " ".join(f"a{each}=1" for each in range(number))
        body = f"<h1>Tea</h1><p {attributes}>Steep green tea for two minutes.</p>".encode()
        page = extract_bounded(ExtractTask("https://example.org/", body, "utf-8", ()))
        assert page.reason or "green tea" in page.content

    grows_with(extract, 2_250)
