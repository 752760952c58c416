"""What axe-core finds wrong for people who do not see or do not use a mouse."""

from __future__ import annotations

from typing import Any


def violations(page: Any, selector: str) -> list[str]:
    """Serious and critical violations of axe-core's rules within a part of a page.

    Args:
        page: A page of Playwright's synchronous API.
        selector: CSS selector of the part.
    """
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"]}  # the rest takes longer to tell
    found = Axe().run(page, context=selector, options=options).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in {"serious", "critical"}
        for node in rule["nodes"]
    ]
