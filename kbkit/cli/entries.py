"""Commands for entries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.cli import AsJson, Options, app, open_workspace, takes, with_options
from kbkit.cli.terminal import print_done, print_listing, printed, progress, say
from kbkit.errors import FilesError
from kbkit.models import EntryStatus
from kbkit.models.values import plain, plain_line, pluralize

if TYPE_CHECKING:
    from kbkit.models import Entry

entries = typer.Typer(help="Manage entries: solutions that worked.", no_args_is_help=True)
app.add_typer(entries, name="entries")

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="Folder name of the entry.")]
Category = Annotated[str | None, typer.Option(help="Its category.")]
Status = Annotated[EntryStatus | None, typer.Option(help="active, draft or deprecated.")]
IfMatch = Annotated[
    str | None, typer.Option(help="The version that it must have now (see `show --json`).")
]


_VALUES: Options = {
    "description": ("", str, "What it is for; search uses this."),
    "prompt": ("", str, "Instructions for an agent."),
    "prompt_file": ("", Path, "A file with the prompt; - for standard input."),
    "readme_file": ("", Path, "A file with the README."),
    "tags": ("--tag", list[str], "Its tag. Repeatable."),
    "category": ("", str, "Its category."),
    "status": ("", EntryStatus, "active, draft or deprecated."),
    "code": ("", list[Path], "A file to copy to code/. Repeatable."),
    "artifact": ("", list[Path], "A file to copy to artifacts/. Repeatable."),
}


@with_options(_VALUES)
def _given_values(**given: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    prompt_file, readme_file = given.pop("prompt_file"), given.pop("readme_file")
    if given["prompt"] is not None and prompt_file is not None:
        raise typer.BadParameter("give --prompt or --prompt-file, not both")
    if prompt_file is not None:
        data = sys.stdin.buffer.read() if str(prompt_file) == "-" else _read(prompt_file)
        given["prompt"] = _text(data, prompt_file)
    if readme_file is not None:
        given["readme"] = _text(_read(readme_file), readme_file)
    places = (("code", given.pop("code")), ("artifacts", given.pop("artifact")))
    files = {
        f"{folder}/{path.name}": _read(path) for folder, paths in places for path in paths or ()
    }
    return {key: value for key, value in given.items() if value not in (None, [])}, files


@entries.command(name="list")
def list_(
    status: Status = None,
    category: Category = None,
    tag: Annotated[str | None, typer.Option(help="Only entries with this tag.")] = None,
    text: Annotated[str, typer.Option(help="Only entries that contain this text.")] = "",
    sort: Annotated[str, typer.Option(help="rating, updated or title.")] = "rating",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries.")] = 50,
    offset: Annotated[int, typer.Option(min=0, help="Number of entries to skip.")] = 0,
    as_json: AsJson = False,
) -> None:
    """List entries, the best-rated first."""
    with open_workspace() as workspace:
        page = workspace.entries.list(
            status=status,
            category=category,
            tag=tag,
            text=text,
            sort=sort,
            limit=limit,
            offset=offset,
        )
    print_listing(
        page.entries,
        as_json,
        "rating votes slug title status tags updated_at",
        empty="" if page.total else "no entries; `kbkit entries add` writes one",
        rating=lambda info: info.rating.average if info.rating.count else "",
        votes=lambda info: info.rating.count,
    )
    if as_json:
        return
    if len(page) < page.total:
        say(f"{page.offset + 1:,} to {page.offset + len(page):,} of {page.total:,}")
    for each in page:
        if each.problem:
            say(f"cannot be read: {each.slug}: {plain(each.problem)}")


@entries.command()
def show(
    slug: Slug,
    path: Annotated[
        str,
        typer.Option("--file", metavar="PATH", help="Print this file of it, such as code/run.py."),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show an entry, or print one of its files."""
    with open_workspace() as workspace:
        if path:
            with workspace.entries.open(slug, path) as stream:
                while part := stream.read(1 << 16):
                    sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
            return
        entry = workspace.entries.read(slug)
    if printed(entry, as_json):
        return
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
            typer.echo("\n" + "\n".join(plain_line(line) for line in text.strip().split("\n")))


@entries.command()
@takes(_given_values, "given")
def add(
    title: Annotated[str | None, typer.Argument(help="Its title (default: ask).")] = None,
    slug: Annotated[str, typer.Option(help="Its folder name (default: from the title).")] = "",
    *,
    given: tuple[dict[str, Any], dict[str, bytes]],
    as_json: AsJson = False,
) -> None:
    """Create an entry; asks if no title is given."""
    values, added = given
    if title is None:
        if not sys.stdin.isatty():
            raise typer.BadParameter("give a title: kbkit entries add TITLE")
        title, asked = _ask({}, values)
        values |= asked
    with open_workspace() as workspace:
        entry = workspace.entries.create(title, slug=slug, files=added, **values)
    _print_entry(entry, "wrote", as_json)


@entries.command()
@takes(_given_values, "given")
def edit(
    slug: Slug,
    title: Annotated[str | None, typer.Option(help="Its title.")] = None,
    *,
    given: tuple[dict[str, Any], dict[str, bytes]],
    remove: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="A file of it to delete. Repeatable.")
    ] = None,
    to: Annotated[str, typer.Option(metavar="SLUG", help="Its new folder name.")] = "",
    if_match: IfMatch = None,
    as_json: AsJson = False,
) -> None:
    """Change an entry; asks if nothing is given."""
    values, added = given
    if title is not None:
        values["title"] = title
    files: dict[str, bytes | None] = {**added, **dict.fromkeys(remove or [])}
    with open_workspace() as workspace:
        current = workspace.entries.read(slug)
        if not values and not files and not to:
            if not sys.stdin.isatty():
                raise typer.BadParameter("give a change, such as --title or --prompt-file")
            was = {
                "title": current.title,
                "description": current.description,
                "tags": ", ".join(current.tags),
                "category": current.category,
                "status": current.status.value,
            }
            new, asked = _ask(was, {"prompt": None})
            values = {"title": new, **{key: each for key, each in asked.items() if key != "prompt"}}
        entry = current
        if values or files:
            entry = workspace.entries.update(slug, files=files, if_match=if_match, **values)
        if to:
            entry = workspace.entries.rename(slug, to=to)
    _print_entry(entry, "changed", as_json)


@entries.command()
def rate(
    slug: Slug,
    score: Annotated[int, typer.Argument(help="1 (useless) to 5 (exactly right).")],
    rater: Annotated[str, typer.Option(help="Who rates (default: KBKIT_RATER, or you).")] = "",
    as_json: AsJson = False,
) -> None:
    """Rate an entry."""
    with open_workspace() as workspace:
        entry = workspace.entries.rate(slug, score, rater=rater)
    print_done(
        entry,
        as_json,
        f"{slug}: {entry.rating.average:g} of {pluralize(entry.rating.count, 'vote')}",
    )


@entries.command()
def rm(slug: Slug, as_json: AsJson = False) -> None:
    """Move an entry to the trash."""
    with open_workspace() as workspace:
        deleted = workspace.entries.delete(slug)
    print_done(
        deleted,
        as_json,
        f"deleted {slug}; `kbkit entries undelete {slug}` restores it until `kbkit compact`",
    )


@entries.command()
def undelete(
    slug: Annotated[
        str | None, typer.Argument(help="Its old folder name or id (default: list the trash).")
    ] = None,
    to: Annotated[str, typer.Option(metavar="SLUG", help="Its new name.")] = "",
    as_json: AsJson = False,
) -> None:
    """Restore an entry from the trash, or list the trash."""
    with open_workspace() as workspace:
        if slug is not None:
            _print_entry(workspace.entries.undelete(slug, to=to), "restored", as_json)
            return
        deleted = workspace.entries.trash()
    print_listing(deleted, as_json, "deleted_at path id", empty="the trash is empty")


@entries.command()
def sync(as_json: AsJson = False) -> None:
    """Read changes by other programs and finished tasks."""
    with open_workspace() as workspace, progress() as on_progress:
        report = workspace.entries.sync(on_progress=on_progress)
    if printed(report, as_json):
        return
    say(f"{report.synced:,} synced: {report}")
    for problem in report.skipped:
        say(f"cannot be read: {plain(problem.uri)}: {plain(problem.reason)}")


@entries.command()
def context(
    prompt: Annotated[str, typer.Argument(help="The task.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of entries.")] = None,
    max_tokens: Annotated[int, typer.Option(min=100, help="Maximum tokens of the text.")] = 1_000,
    as_json: AsJson = False,
) -> None:
    """Print the entries that fit a task, for an agent."""
    with open_workspace() as workspace:
        answer = workspace.entries.context(prompt, limit=limit, max_tokens=max_tokens)
    if not printed(answer, as_json):
        typer.echo("\n".join(plain_line(line) for line in answer.text.split("\n")))


@entries.command()
def learn(
    folder: Annotated[
        Path | None,
        typer.Argument(help="`.knowledge` or its parent (default: print instructions for agents)."),
    ] = None,
    task_id: Annotated[str, typer.Option(help="Name of the task.")] = "",
    as_json: AsJson = False,
) -> None:
    """Create or update an entry from a task's `.knowledge` folder."""
    with open_workspace() as workspace:
        if folder is None:
            text = workspace.entries.learning_prompt()
            if not printed({"prompt": text}, as_json):
                typer.echo(text, nl=False)
            return
        entry = workspace.entries.learn(folder, task_id=task_id)
    _print_entry(entry, "learned", as_json)


@entries.command(name="import")
def import_(
    folder: Annotated[Path, typer.Argument(help="An Agent Skill, or a folder of them.")],
    as_json: AsJson = False,
) -> None:
    """Import Agent Skills, all or none."""
    with open_workspace() as workspace:
        imported = workspace.entries.import_skills(folder)
    if printed(imported, as_json):
        return
    for entry in imported:
        say(f"imported {entry.slug}")


@entries.command()
def export(
    folder: Annotated[Path, typer.Argument(help="The folder to write to.")],
    slugs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SLUG]...", help="Folder names of entries (default: all)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Export entries as Agent Skills."""
    with open_workspace() as workspace:
        folders = workspace.entries.export_skills(folder, slugs=slugs or None)
    print_done(folders, as_json, f"wrote {pluralize(len(folders), 'skill')}: {folder}")


def _ask(was: Mapping[str, str], options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:

    def ask(label: str, key: str, default: str = "") -> str:
        before = was.get(key, default)
        answer = typer.prompt(label, default=before, show_default=bool(before), err=True)
        return str(answer).strip()

    title = ""
    while not title:
        title = ask("Title", "title")
    asked: dict[str, Any] = {}
    for key, label in (
        ("description", "Purpose"),
        ("tags", "Tags, separated by commas"),
        ("category", "Category"),
        ("prompt", "Instructions, in one line (more go into prompt.md)"),
    ):
        if key not in options:
            asked[key] = ask(label, key)
    if "tags" in asked:
        asked["tags"] = [each for each in asked["tags"].split(",") if each.strip()]
    if "status" not in options:
        status = ""
        while status not in tuple(EntryStatus):
            status = ask("Status (active, draft, deprecated)", "status", EntryStatus.ACTIVE)
        asked["status"] = status
    return title, asked


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


def _print_entry(entry: Entry, done: str, as_json: bool) -> None:
    print_done(entry, as_json, f"{done} {entry.slug}")
