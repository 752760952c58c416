"""A page that takes long to read is read where that can be ended."""

import time

from kbkit.sources.html.extract_task import ExtractTask, extract_bounded


def test_many_attributes_take_no_time_of_this_process():
    attributes = " ".join(f"a{number}=1" for number in range(18_000))
    body = f"<h1>Tea</h1><p {attributes}>Steep green tea for two minutes.</p>".encode()
    began = time.process_time()
    page = extract_bounded(ExtractTask("https://example.org/", body, "utf-8", ()))
    assert time.process_time() - began < 10
    assert page.reason or "green tea" in page.content
