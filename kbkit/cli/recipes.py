"""Commands for recipes: list the gallery, check, draft, build."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit import cli
from kbkit.cli.terminal import complain, listing, print_pairs, progress, say
from kbkit.errors import ConflictError
from kbkit.models.values import pluralize

if TYPE_CHECKING:
    from kbkit.workflows.draft import Draft, Exclusion
    from kbkit.workflows.gallery import GalleryRecipe

Recipe = Annotated[Path, typer.Argument(help="A recipe file.")]

recipes = typer.Typer(help="List, copy and check recipes.", no_args_is_help=True)
cli.app.add_typer(recipes, name="recipes")


_FIGURES = ("documents", "seconds", "megabytes", "ndcg", "hit1")


def _figure(key: str, recipe: GalleryRecipe) -> object:
    return recipe.figures.get(key, "-")


_figures: dict[str, Any] = {key: partial(_figure, key) for key in _FIGURES}


@cli.command(
    recipes,
    "list",
    show=listing("name sources documents seconds megabytes ndcg hit1 address", **_figures),
)
def list_() -> list[GalleryRecipe]:
    """List the recipes that come with kbkit."""
    from kbkit.workflows.gallery import list_recipes

    say("copy one with `kbkit recipes copy NAME`; - means that it was not run")
    return list_recipes()


@cli.command(recipes)
def copy(
    name: str, folder: Annotated[Path, typer.Argument()] = Path(), *, force: bool = False
) -> None:
    """Copy a recipe with the files that it reads.

    Args:
        name: A recipe of the list.
        folder: Folder to copy it to.
        force: Overwrite existing files.
    """
    from kbkit.workflows.gallery import copy_recipe

    first, *extra_files = copy_recipe(name, folder, force=force)
    ending = f" and {pluralize(len(extra_files), 'file')} that it reads" if extra_files else ""
    say(f"wrote {first}{ending}; `kbkit build {first}` builds it")


@cli.command(recipes)
def check(recipe: Recipe) -> cli.Done:
    """Check a recipe for errors."""
    from kbkit.workflows.gallery import check_recipe

    findings = check_recipe(recipe)
    errors = sum(finding.severity == "error" for finding in findings)

    def show() -> None:
        for finding in findings:
            complain(str(finding))
        warnings = pluralize(len(findings) - errors, "warning")
        say(f"{recipe}: {pluralize(errors, 'error')}, {warnings}")

    return cli.Done(findings, show, cli.EXIT_ERROR if errors else 0)


@cli.command(cli.app)
def build(
    recipe: Recipe,
    *,
    site: bool = True,
    yes: bool = False,
    trust: bool = False,
    engine: str = "local",
) -> cli.Done:
    """Build or update a recipe's knowledge base and site.

    Args:
        site: Also build the site.
        yes: Let the recipe's language model exceed its `limit`.
        engine: Where the work runs: local, dask, or dask:ADDRESS, such as
            dask:tcp://10.0.0.5:8786.
    """
    from kbkit.recipes import load_recipe
    from kbkit.workflows.builder import build as build_recipe

    loaded = load_recipe(recipe)
    going_on = cli.resumable(f"kbkit build {recipe}")
    with cli.open_workspace() as workspace, going_on, progress() as on_progress:
        report = build_recipe(
            loaded,
            workspace,
            site=site,
            expand_all=yes,
            engine=engine,
            trust=trust,
            on_progress=on_progress,
        )
    say(f"built {report.info.name}")
    for problem in report.ingest.failed_sources:
        say(f"nothing could be read from {problem.uri}")
    failed = report.ingest.nothing_read or report.ingest.failed_sources
    show = partial(print_pairs, report.lines())
    return cli.Done(report, show, cli.EXIT_NOTHING_READ if failed else 0)


@cli.command(cli.app)
def notebook(
    recipe: Recipe,
    *,
    output: Path | None = None,
    workspace: Path | None = None,
    run: bool = False,
    trust: bool = False,
    force: bool = False,
) -> None:
    """Write a notebook that builds a recipe.

    Args:
        output: The notebook (default: NAME.ipynb).
        workspace: Workspace that the notebook builds into.
        run: Also run it and keep the output.
    """
    from kbkit.workflows.notebook import run_notebook, write_notebook

    path = write_notebook(
        recipe, output, workspace=workspace or cli.Chosen.workspace, trust=trust, force=force
    )
    say(f"wrote {path}")
    if run:
        with progress() as on_progress:
            run_notebook(path, on_progress=on_progress)
        say("ran it; open it in Jupyter to see the results")


@cli.command(cli.app)
def init(
    place: str,
    *,
    output: Path | None = None,
    name: str = "",
    description: str = "",
    license: str = "",
    question: list[str] | None = None,
    yes: bool = False,
    force: bool = False,
    allow_private: bool = False,
) -> None:
    """Write a first recipe for a site, folder or package.

    Args:
        place: An address, folder, file, OpenAPI description or Python package.
        output: The recipe (default: NAME.yaml).
        name: Name of the knowledge base.
        description: Its description, in a sentence.
        license: License of the documents.
        question: A golden question and its page: 'QUESTION = PAGE'. Repeatable.
        yes: Ask nothing; use the values that were found.
    """
    from kbkit.recipes import demands, load_recipe
    from kbkit.workflows.draft import check_free, write_draft
    from kbkit.workflows.drafts import draft_recipe

    if output is not None and not force:
        check_free(output)  # before reading and prompts
    base = output.parent if output is not None else Path()
    with progress() as on_progress:
        draft = draft_recipe(place, base=base, allow_private=allow_private, on_progress=on_progress)
    draft = replace(
        draft,
        name=name or draft.name,
        description=description or draft.description,
        license=license or draft.license,
        questions=tuple(_question(text) for text in question or ()),
    )
    for line in draft.findings:
        say(line)
    if not yes and sys.stdin.isatty():
        draft = _complete(draft, has_name=bool(name), may_exist=force or output is not None)
    path = write_draft(draft, output, force=force)
    option = " --trust" if demands(load_recipe(path)) else ""
    check, build = f"kbkit recipes check {path}", f"kbkit build {path}{option}"
    say(f"wrote {path}; look through it, then `{check}` and `{build}`")


def _question(text: str) -> tuple[str, str]:
    question, separator, page = text.rpartition("=")
    if not separator or not question.strip() or not page.strip():
        raise typer.BadParameter(f"--question {text!r}: write it as 'QUESTION = PAGE'")
    return question.strip(), page.strip()


def _complete(draft: Draft, *, has_name: bool, may_exist: bool) -> Draft:
    """Complete a draft with answers from the terminal.

    Args:
        draft: Draft from the source.
        has_name: Whether the command line gave its name.
        may_exist: Whether the file of a name may exist.
    """
    from kbkit.recipes import check_name
    from kbkit.workflows.draft import check_free

    def usable(text: str) -> str:
        try:
            name = check_name(text.strip())
            if not may_exist:
                check_free(Path(f"{name}.yaml"))
        except (ValueError, ConflictError) as error:
            raise typer.BadParameter(str(error)) from None
        return name

    changes: dict[str, object] = {}
    if not has_name:
        changes["name"] = typer.prompt(
            "Name of the knowledge base", draft.name, value_proc=usable, err=True
        )
    source = dict(draft.source)
    if "example.org" in str(source.get("base_url", "")):
        question = "Where are these pages published? (https://...; Enter: not known)"
        source["base_url"] = (
            typer.prompt(question, default="", value_proc=_web_address, err=True)
            or source["base_url"]
        )
        changes["source"] = source
    if not draft.description:
        changes["description"] = _prompt("What is it about, in a sentence? (Enter: later)")
    if not draft.license:
        changes["license"] = _prompt("Its license, such as CC-BY-4.0? (Enter: not known)")
    excluded = [each for each in draft.excluded if not each.pages or _confirm_exclusion(each)]
    questions = list(draft.questions)
    while text := _prompt("A golden question, in a reader's words (Enter: no more)"):
        page = _prompt("  end of the address of its page")
        if page:
            questions.append((text, page))
    return replace(draft, **changes, excluded=tuple(excluded), questions=tuple(questions))  # type: ignore[arg-type]


def _confirm_exclusion(pages: Exclusion) -> bool:
    question = f"Leave out {pages.pattern} ({pages.reason}, {pluralize(pages.pages, 'page')})?"
    return typer.confirm(question, default=True, err=True)


def _web_address(text: str) -> str:
    text = text.strip()
    if text and not re.match(r"https?://[^\s/]", text):
        raise typer.BadParameter(f"{text!r}: not a web address, such as https://docs.example.com/")
    return text


def _prompt(text: str) -> str:
    answer: str = typer.prompt(text, default="", err=True)
    return answer.strip()
