"""Commands about embedding models."""

from __future__ import annotations

from typing import Annotated

import typer

from kbkit.cli.app import AllowPrivate, AsJson, app, resumable
from kbkit.terminal import print_json, print_table, progress, say

models = typer.Typer(help="Manage embedding models.", no_args_is_help=True)
app.add_typer(models, name="models")

Model = Annotated[
    str, typer.Argument(help="A model of the list, or OWNER/MODEL of the hub.", show_default=False)
]


@models.command("list")
def list_(as_json: AsJson = False) -> None:
    """List embedding models and which are installed."""
    from rich.table import Table

    from kbkit.embedding_models import list_models

    found = list_models()
    if as_json:
        print_json([model.to_dict() for model in found])
        return
    table = Table(
        "name", "dim.", "MB", "cost", "languages", "license", "good for", "here", box=None
    )
    for model in found:
        table.add_row(
            model.name, str(model.dimensions or "?"), str(model.megabytes), str(model.cost or "?"),
            model.languages, model.license, model.good_for,
            "yes" if model.installed else model.where,
        )  # fmt: skip
    print_table(table)
    say("cost: time of a chunk, static vectors as 1, about")


@models.command()
def fetch(
    name: Model,
    revision: Annotated[str, typer.Option(help="Branch, tag or commit.")] = "",
    file: Annotated[str, typer.Option(help="Path of the ONNX file in the repository.")] = "",
    sha256: Annotated[str, typer.Option(help="Expected SHA-256 of the ONNX file.")] = "",
    allow_private: AllowPrivate = False,
) -> None:
    """Download a model; resumes after an interruption."""
    from kbkit.embedding_models import fetch_model

    with resumable(f"kbkit models fetch {name}"), progress() as on_progress:
        folder = fetch_model(
            name, revision=revision, file=file, sha256=sha256, allow_private=allow_private,
            on_progress=on_progress,
        )  # fmt: skip
    say(f"fetched {name} to {folder}; name it in a recipe: {{type: onnx, preset: {name}}}")


@models.command()
def remove(
    name: Model,
    forget: Annotated[bool, typer.Option("--forget", help="Also forget its hashes.")] = False,
) -> None:
    """Delete a downloaded model."""
    from kbkit.embedding_models import remove_model

    remove_model(name, forget=forget)
    say(f"removed {name}")
