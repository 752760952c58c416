"""Commands for entries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.cli import Count, Done, OptionalCount, app, command, open_workspace
from kbkit.cli.terminal import listing, print_json, say
from kbkit.errors import FilesError
from kbkit.models import EntryStatus
from kbkit.models.values import plain, plain_line, pluralize

if TYPE_CHECKING:
    from kbkit.models import Context, DeletedFile, Entry, EntryPage, EntrySyncReport
    from kbkit.runtime.progress import OnProgress
    from kbkit.workspace import Workspace

entries = typer.Typer(help="Manage entries: solutions that worked.", no_args_is_help=True)
app.add_typer(entries, name="entries")

Slug = Annotated[str, typer.Argument(help="Folder name of the entry.")]


def _given_values(
    *,
    description: str | None = None,
    prompt: str | None = None,
    prompt_file: Path | None = None,
    readme_file: Path | None = None,
    tags: list[str] | None = None,
    category: str | None = None,
    status: EntryStatus | None = None,
    code: list[Path] | None = None,
    artifact: list[Path] | None = None,
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return values and files of an entry.

    Args:
        description: What it is for; search uses this.
        prompt: Instructions for an agent.
        prompt_file: A file with the prompt; - for standard input.
        readme_file: A file with the README.
        tags: Its tag. Repeatable.
        category: Its category.
        status: active, draft or deprecated.
        code: A file to copy to code/. Repeatable.
        artifact: A file to copy to artifacts/. Repeatable.
    """
    if prompt is not None and prompt_file is not None:
        raise typer.BadParameter("give --prompt or --prompt-file, not both")
    if prompt_file is not None:
        data = sys.stdin.buffer.read() if str(prompt_file) == "-" else _read(prompt_file)
        prompt = _text(data, prompt_file)
    values = {
        "description": description,
        "prompt": prompt,
        "readme": None if readme_file is None else _text(_read(readme_file), readme_file),
        "tags": tags,
        "category": category,
        "status": status,
    }
    files = {
        f"{folder}/{path.name}": _read(path)
        for folder, paths in (("code", code), ("artifacts", artifact))
        for path in paths or ()
    }
    return {key: value for key, value in values.items() if value is not None}, files


Given = Annotated[tuple[dict[str, Any], dict[str, bytes]], _given_values]


def _print_page(page: EntryPage) -> None:
    listing(
        "rating votes slug title status tags updated_at",
        "" if page.total else "no entries; `kbkit entries add` writes one",
        rating=lambda info: info.rating.average if info.rating.count else "",
        votes=lambda info: info.rating.count,
    )(page.entries)
    if len(page) < page.total:
        say(f"{page.offset + 1:,} to {page.offset + len(page):,} of {page.total:,}")
    for entry in page:
        if entry.problem:
            say(f"cannot be read: {entry.slug}: {plain(entry.problem)}")


@command(entries, "list")
def list_(
    ws: Workspace,
    *,
    status: EntryStatus | None = None,
    category: str | None = None,
    tag: str | None = None,
    text: str = "",
    sort: str = "rating",
    limit: Count = 50,
    offset: Annotated[int, typer.Option(min=0)] = 0,
) -> Done:
    """List entries, the best-rated first.

    Args:
        status: active, draft or deprecated.
        category: Its category.
        tag: Only entries with this tag.
        text: Only entries that contain this text.
        sort: rating, updated or title.
        limit: Maximum number of entries.
        offset: Number of entries to skip.
    """
    page = ws.entries.list(
        status=status, category=category, tag=tag, text=text, sort=sort, limit=limit, offset=offset
    )
    return Done(page.entries, partial(_print_page, page))


def _plain_text(text: str) -> str:
    return "\n".join(map(plain_line, text.split("\n")))


def _print_entry(entry: Entry) -> None:
    votes = f" {entry.rating.average:g} of {pluralize(entry.rating.count, 'vote')}"
    head = {
        "title": entry.title,
        "slug": entry.slug,
        "rating": entry.rating.stars + votes if entry.rating.count else "",
        "status": entry.status.value,
        "category": entry.category,
        "tags": ", ".join(entry.tags),
        "written by": f"{entry.source.value} {entry.origin_task_id}".strip(),
        "updated": f"{entry.updated_at:%Y-%m-%d %H:%M} UTC",
        "files": ", ".join(f"{file.path} ({file.size:,} bytes)" for file in entry.files),
        "description": entry.description,
    }
    for label, value in head.items():
        if value:
            typer.echo(f"{label}: {plain(value)}")
    for text in (entry.readme, entry.prompt):
        if text.strip():
            typer.echo("\n" + _plain_text(text.strip()))


@command(entries)
def show(ws: Workspace, slug: Slug, *, file: str = "", as_json: bool = False) -> None:
    """Show an entry, or print one of its files.

    Args:
        file: Print this file of it, such as code/run.py.
    """
    if file:
        with ws.entries.open(slug, file) as stream:
            while part := stream.read(1 << 16):
                sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
        return
    entry = ws.entries.read(slug)
    if as_json:
        print_json(entry)
    else:
        _print_entry(entry)


@command(entries)
def add(title: str | None = None, *, slug: str = "", given: Given) -> Done:
    """Create an entry; asks if no title is given.

    Args:
        title: Its title (default: ask).
        slug: Its folder name (default: from the title).
    """
    values, added = given
    if title is None:
        if not sys.stdin.isatty():
            raise typer.BadParameter("give a title: kbkit entries add TITLE")
        title, answers = _ask(values)
        values |= answers
    with open_workspace() as ws:
        return _entry_done("wrote", ws.entries.create(title, slug=slug, files=added, **values))


@command(entries)
def edit(
    ws: Workspace,
    slug: Slug,
    *,
    title: str | None = None,
    given: Given,
    remove: list[str] | None = None,
    to: str = "",
    if_match: str | None = None,
) -> Done:
    """Change an entry.

    Args:
        title: Its title.
        remove: A file of it to delete. Repeatable.
        to: Its new folder name.
        if_match: The version that it must have now (see `show --json`).
    """
    values, added = given
    if title is not None:
        values["title"] = title
    files: dict[str, bytes | None] = {**added, **dict.fromkeys(remove or [])}
    if not values and not files and not to:
        raise typer.BadParameter("give a change, such as --title or --prompt-file")
    entry = ws.entries.read(slug)
    if values or files:
        entry = ws.entries.update(slug, files=files, if_match=if_match, **values)
    if to:
        entry = ws.entries.rename(slug, to=to)
    return _entry_done("changed", entry)


@command(entries)
def rate(ws: Workspace, slug: Slug, score: int, *, rater: str = "") -> Done:
    """Rate an entry.

    Args:
        score: 1 (useless) to 5 (exactly right).
        rater: Who rates (default: KBKIT_RATER, or you).
    """
    entry = ws.entries.rate(slug, score, rater=rater)
    votes = pluralize(entry.rating.count, "vote")
    return Done(entry, f"{slug}: {entry.rating.average:g} of {votes}")


@command(entries)
def rm(ws: Workspace, slug: Slug) -> Done:
    """Move an entry to the trash."""
    restore = f"`kbkit entries undelete {slug}` restores it until `kbkit compact`"
    return Done(ws.entries.delete(slug), f"deleted {slug}; {restore}")


@command(entries, show=listing("deleted_at path id", "the trash is empty"))
def undelete(ws: Workspace, slug: str | None = None, *, to: str = "") -> Done | list[DeletedFile]:
    """Restore an entry from the trash, or list the trash.

    Args:
        slug: Its old folder name or id (default: list the trash).
        to: Its new name.
    """
    if slug is None:
        return ws.entries.trash()
    return _entry_done("restored", ws.entries.undelete(slug, to=to))


def _print_sync(report: EntrySyncReport) -> None:
    say(f"{report.synced:,} synced: {report}")
    for problem in report.skipped:
        say(f"cannot be read: {plain(problem.uri)}: {plain(problem.reason)}")


@command(entries, show=_print_sync)
def sync(ws: Workspace, on_progress: OnProgress | None) -> EntrySyncReport:
    """Read changes by other programs and finished tasks."""
    return ws.entries.sync(on_progress=on_progress)


@command(entries, show=lambda answer: typer.echo(_plain_text(answer.text)))
def context(
    ws: Workspace,
    prompt: str,
    *,
    limit: OptionalCount = None,
    max_tokens: Annotated[int, typer.Option(min=100)] = 1_000,
) -> Context:
    """Print the entries that fit a task, for an agent.

    Args:
        prompt: The task.
        limit: Maximum number of entries.
        max_tokens: Maximum tokens of the text.
    """
    return ws.entries.context(prompt, limit=limit, max_tokens=max_tokens)


@command(entries, show=lambda answer: typer.echo(answer["prompt"], nl=False))
def learn(ws: Workspace, folder: Path | None = None, *, task_id: str = "") -> Done | dict[str, str]:
    """Create or update an entry from a task's `.knowledge` folder.

    Args:
        folder: `.knowledge` or its parent (default: print instructions for agents).
        task_id: Name of the task.
    """
    if folder is None:
        return {"prompt": ws.entries.learning_prompt()}
    return _entry_done("learned", ws.entries.learn(folder, task_id=task_id))


@command(entries, "import")
def import_(ws: Workspace, folder: Path) -> Done:
    """Import Agent Skills, all or none.

    Args:
        folder: An Agent Skill, or a folder of them.
    """
    imported = ws.entries.import_skills(folder)
    return Done(imported, "\n".join(f"imported {entry.slug}" for entry in imported))


@command(entries)
def export(ws: Workspace, folder: Path, slugs: list[str] | None = None) -> Done:
    """Export entries as Agent Skills.

    Args:
        folder: The folder to write to.
        slugs: Folder names of entries (default: all).
    """
    folders = ws.entries.export_skills(folder, slugs=slugs)
    return Done(folders, f"wrote {pluralize(len(folders), 'skill')}: {folder}")


def _ask(values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Ask for a title and for missing values."""

    def ask(label: str, default: str = "") -> str:
        answer = typer.prompt(label, default=default, show_default=bool(default), err=True)
        return str(answer).strip()

    title = ""
    while not title:
        title = ask("Title")
    labels = {
        "description": "Purpose",
        "tags": "Tags, separated by commas",
        "category": "Category",
        "prompt": "Instructions, in one line (more go into prompt.md)",
    }
    answers: dict[str, Any] = {key: ask(labels[key]) for key in labels if key not in values}
    if "tags" in answers:
        answers["tags"] = [each for each in answers["tags"].split(",") if each.strip()]
    while "status" not in values and answers.get("status") not in tuple(EntryStatus):
        answers["status"] = ask("Status (active, draft, deprecated)", EntryStatus.ACTIVE)
    return title, answers


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FilesError(f"{path}: cannot be read ({error.strerror})") from None


def _text(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FilesError(f"{path}: is not UTF-8 text") from None


def _entry_done(verb: str, entry: Entry) -> Done:
    return Done(entry, f"{verb} {entry.slug}")
