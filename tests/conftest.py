"""What all tests share: a browser, and the rule that CI must not skip what needs one."""

import os
import shutil

import pytest

REQUIRED = os.environ.get("KBKIT_REQUIRE_BROWSER") == "1"


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium to drive."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("needs chromium; on Debian: apt-get install chromium")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if REQUIRED and report.skipped and item.get_closest_marker("browser"):
        report.outcome = "failed"
        report.longrepr = f"KBKIT_REQUIRE_BROWSER=1, but skipped: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    path = getattr(collector, "path", None)
    if REQUIRED and report.outcome == "skipped" and path and "browser" in path.parts:
        report.outcome = "failed"
        report.longrepr = f"KBKIT_REQUIRE_BROWSER=1, but skipped: {report.longrepr}"
    return report
