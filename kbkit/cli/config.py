"""Commands for settings."""

from __future__ import annotations

import typer

from kbkit.cli.app import AsJson, app, chosen_workspace
from kbkit.cli.terminal import print_json, print_table, say

config = typer.Typer(help="Show settings and where they come from.", no_args_is_help=True)
app.add_typer(config, name="config")

MEANINGS = {
    "workspace": "Folder of the workspace",
    "database_url": "PostgreSQL server for the catalog",
    "pgvector": "Store vectors in PostgreSQL if it has pgvector",
    "chroma_url": "Chroma server for vectors",
    "chroma_token": "Token for the Chroma server",
    "user_agent": "User agent of the crawler",
    "timeout": "Seconds that a request may take",
    "rater": "Name that ratings are stored under",
    "crawl_provider": "trafilatura, browser or firecrawl",
    "browser": "Path of Chromium for the provider browser",
    "browser_sandbox": "Run Chromium in a sandbox",
    "improve": "When models embed: background, wait or off",
    "top_k": "Maximum passages of a context",
    "max_entities": "Maximum entities of a context",
    "max_entries": "Maximum entries of a context",
    "auto_learn": "Folder of tasks to learn entries from",
    "panel_token": "Token for visitors of `kbkit panel`",
    "models": "Folder of downloaded embedding models",
    "models_url": "Hub to download models from",
}
_SECRETS = ("panel_token", "database_url", "chroma_url", "chroma_token")


@config.command("show")
def show(as_json: AsJson = False) -> None:
    """Show each setting with its value and origin."""
    from kbkit.runtime.config import setting_values, unknown_variables

    rows = []
    for each in setting_values():
        value, origin = each.value, each.origin
        if each.name == "workspace" and chosen_workspace() is not None:
            value, origin = chosen_workspace(), "--workspace"
        if each.name in _SECRETS and value:
            value = "(set)"
        rows.append((each.name, str(value), origin, MEANINGS[each.name]))
    if as_json:
        print_json(
            [dict(zip(("name", "value", "origin", "meaning"), row, strict=True)) for row in rows]
        )
    else:
        print_table(("setting", "value", "from", "meaning"), rows)
        say("More: https://kbkit.github.io/kbkit/settings/")
    for problem in unknown_variables():
        say(f"note: {problem}")
