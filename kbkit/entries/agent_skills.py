"""Convert entries to Agent Skills (https://agentskills.io/specification) and back.

A skill is a folder with a ``SKILL.md``: front matter and instructions. Votes are left out, since
they would change the digests of served files.
"""

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kbkit.entries.folders import NAME, read_folder, slug_fault, slug_of
from kbkit.entries.index import EntryIndex
from kbkit.entries.skill_file import MAX_TAGS, MAX_TITLE_LENGTH, VOTES, located, new_skill, scalar
from kbkit.entries.store import PROMPT, README, StoredEntry, private_folder, renewal, title_of
from kbkit.errors import EntryFormatError, FilesError, MissingPathError, PathExistsError
from kbkit.files.directory import Directory
from kbkit.files.paths import fault, parts_of
from kbkit.models import EntrySource, EntryStatus
from kbkit.placed_yaml import YamlMapping, read_yaml

FILE = "SKILL.md"
_FILES = (FILE, FILE.lower())
_LIMITS = {"name": 64, "description": 1024, "compatibility": 500}  # of the specification
MAX_SKILLS = 1_000  # in one import
_MAX_BODY_LENGTH = 20_000  # characters; longer instructions become a separate file
_MAX_VALUE_LENGTH = 5_000
# folders of an entry and of a skill
_FOLDERS = (("code/", "scripts/"), ("artifacts/", "assets/"))
_LONG = "references/prompt.md"
_README = f"references/{README}"
_TOP_KEYS = ("license", "compatibility", "allowed-tools")
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")


class Skill(NamedTuple):
    """A skill as an entry, with values for ``skill.yaml``."""

    slug: str
    values: Mapping[str, Any]
    extra: Mapping[str, Any]
    files: Mapping[str, bytes]


def skill_files(stored: StoredEntry) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    renamed: dict[str, str] = {}
    for path, data in stored.files.items():
        if path in (NAME, PROMPT, VOTES):
            continue
        name = _README if path == README else _rename_path(path, _FOLDERS)
        if name in files or name in (FILE, _LONG):
            raise EntryFormatError(
                f"{stored.slug}/{path}: would be {name} in the skill, which already exists; "
                "rename one of them"
            )
        files[name] = data
        renamed[path] = name
    body = _with_names(_text(stored.files.get(PROMPT, b"")), renamed)
    metadata = _metadata(stored)
    if len(body) > _MAX_BODY_LENGTH:
        files[_LONG] = body.encode()
        metadata["prompt"] = _LONG
        body = f"# {title_of(stored)}\n\nRead [how it is done]({_LONG}) first.\n"
    if README in stored.files:
        files[_README] = _with_names(_text(stored.files[README]), renamed).encode()
    description = _line(stored.skill.description) or title_of(stored)
    front = {"name": stored.slug, "description": _cut(description, _LIMITS["description"])}
    for key in _TOP_KEYS:
        if isinstance(value := stored.skill.extra.get(key), str):
            front[key] = _line(value)[: _LIMITS.get(key)].strip()
    lines = [f"{key}: {_quote(value)}" for key, value in front.items() if value]
    own = [f"  {scalar(key)}: {_quote(value)}" for key, value in metadata.items()]
    head = "\n".join(["---", *lines, "metadata:", *own, "---", "", ""])
    files[FILE] = f"{head}{body}".encode()
    return files


def _metadata(stored: StoredEntry) -> dict[str, str]:
    skill = stored.skill
    values = skill.extra.get("metadata")
    metadata = {
        key: _line(str(value))
        for key, value in (skill.extra | (values if isinstance(values, dict) else {})).items()
        if key not in (*_TOP_KEYS, "metadata")
        and value is not None
        and not isinstance(value, dict | list)
    }
    metadata["title"] = title_of(stored)
    metadata["tags"] = ", ".join(_line(tag.replace(",", " ")) for tag in skill.tags)
    metadata["category"] = skill.category
    metadata["status"] = skill.status.value
    return {key: value for key, value in metadata.items() if value and key}


def find_skills(folder: Path) -> list[Path]:
    root = folder.expanduser().absolute()
    if not root.is_dir():
        raise MissingPathError(f"{folder}: there is no such folder")
    if _is_skill(root):
        return [root]
    try:
        folders = sorted(each for each in root.iterdir() if _is_skill(each))
    except OSError as error:
        raise FilesError(f"{folder}: cannot be read ({error.strerror})") from None
    if not folders:
        raise MissingPathError(f"{folder}: has no {FILE}, nor a folder with one")
    if len(folders) > MAX_SKILLS:
        raise EntryFormatError(f"{folder}: has more than {MAX_SKILLS:,} skills; import fewer")
    return folders


def _is_skill(place: Path) -> bool:
    return any((place / name).is_symlink() or (place / name).is_file() for name in _FILES)


def read_skill_folder(place: Path) -> Skill:
    files = read_folder(place)
    file = next((each for each in _FILES if each in files), FILE)
    if file not in files:
        raise EntryFormatError(f"{place / file}: is not a readable file")
    with located(f"{place / file}: "):
        mapping, body = _parse_skill(files.pop(file))
        name = _check_name(mapping, place.name)
        values, extra = _values(mapping, name)
    pairs = tuple((new, old) for old, new in _FOLDERS)
    is_long = extra["metadata"].pop("prompt", "") == _LONG and _LONG in files
    entry: dict[str, bytes] = {}
    renamed: dict[str, str] = {}
    for path, data in files.items():
        if is_long and path == _LONG:
            continue
        target = README if path == _README and README not in files else _rename_path(path, pairs)
        if target in entry or target.casefold() in (NAME, PROMPT, VOTES):
            target = f"references/{path}"
        entry[target] = data
        renamed[path] = target
    prompt = _with_names(_text(files[_LONG]) if is_long else body.lstrip("\r\n"), renamed)
    if prompt:
        entry[PROMPT] = prompt.encode()
    if README in entry:
        entry[README] = _with_names(_text(entry[README]), renamed).encode()
    extra = {key: value for key, value in extra.items() if value}
    return Skill(slug_of(name) if slug_fault(name) else name, values, extra, entry)


def _parse_skill(data: bytes) -> tuple[YamlMapping, str]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise EntryFormatError("is not UTF-8 text") from None
    parts = _FRONT.match(text)
    if parts is None:
        raise EntryFormatError(
            "line 1: has no front matter; begin with a line '---', then 'name:' and "
            "'description:', then '---'",
            1,
            1,
        )
    return read_yaml(f"\n{parts[1]}", as_texts=True), parts[2]


def _check_name(mapping: YamlMapping, folder: str) -> str:
    name = unicodedata.normalize("NFKC", _string(mapping, "name"))
    reason = ""
    if not name:
        reason = "is missing"
    elif not _NAME.fullmatch(name) or name != name.lower():
        reason = "must consist of lower-case letters, digits and single hyphens"
    elif fault(name):
        reason = fault(name)
    elif name != unicodedata.normalize("NFKC", folder):
        reason = f"is {name!r}, and its folder is {ascii(folder)[1:-1]!r}; give both one name"
    if reason:
        raise mapping.fault(("name",), reason)
    return name


def _values(mapping: YamlMapping, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    description = _string(mapping, "description")
    if not description:
        raise mapping.fault(("description",), "is missing")
    metadata = mapping.values.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise mapping.fault(("metadata",), "must be a mapping of strings")
    remaining = {key: _flat(value) for key, value in metadata.items()}
    status = remaining.pop("status", "")
    tags = [" ".join(tag.split()) for tag in remaining.pop("tags", "").split(",")]
    title = remaining.pop("title", "") or name.replace("-", " ").capitalize()
    values = {
        "title": _cut(title, MAX_TITLE_LENGTH),
        "description": description,
        "tags": list(dict.fromkeys(filter(None, tags)))[:MAX_TAGS],
        "category": _cut(remaining.pop("category", ""), MAX_TITLE_LENGTH),
        "status": status if status in tuple(EntryStatus) else EntryStatus.ACTIVE.value,
    }
    extra: dict[str, Any] = {key: _string(mapping, key) for key in _TOP_KEYS}
    unknown = {
        key: _flat(value)
        for key, value in mapping.values.items()
        if key not in ("name", "description", "metadata", *_TOP_KEYS)
    }
    extra["metadata"] = {key: value for key, value in {**unknown, **remaining}.items() if value}
    return values, extra


def entry_files(
    skill: Skill, before: StoredEntry | None, ids: Mapping[str, str]
) -> dict[str, bytes]:
    values = {
        **skill.values,
        "source": EntrySource.MANUAL if before is None else before.skill.source,
        "origin_task_id": "" if before is None else before.skill.origin_task_id,
        **renewal(before, skill.slug, ids),
    }
    return {**skill.files, NAME: new_skill(values, skill.extra).encode()}


def import_skills(index: EntryIndex, folder: Path) -> list[str]:
    """Write the skills of a folder as entries, all or none; return their slugs."""
    skills = [read_skill_folder(place) for place in find_skills(folder)]
    with index.store.hold_lock():
        before = {skill.slug: index.store.existing(skill.slug) for skill in skills}
        ids = index.ids()
        for skill in skills:
            was = before[skill.slug]
            index.store.renew(skill.slug, entry_files(skill, was, ids), was)
    return [skill.slug for skill in skills]


def _string(mapping: YamlMapping, key: str) -> str:
    value = mapping.values.get(key)
    if isinstance(value, dict):
        raise mapping.fault((key,), "must be a string")
    text, limit = _flat(value), _LIMITS.get(key, _MAX_VALUE_LENGTH)
    if len(text) > limit:
        raise mapping.fault((key,), f"has more than {limit:,} characters")
    return text


def _flat(value: Any) -> str:
    if isinstance(value, list):
        return _line(" ".join(_flat(each) for each in value))
    if isinstance(value, dict):
        return _line("; ".join(f"{key}: {_flat(each)}" for key, each in value.items()))
    return "" if value is None else _line(str(value))


def _rename_path(path: str, folders: tuple[tuple[str, str], ...]) -> str:
    for source, target in folders:
        if path.startswith(source):
            return target + path.removeprefix(source)
    return path


def _with_names(text: str, renamed: Mapping[str, str]) -> str:
    for old, new in sorted(renamed.items(), reverse=True):
        if old != new and "/" in old:
            replacement = new.replace("\\", r"\\")
            text = re.sub(rf"(?<![\w/.-]){re.escape(old)}(?![\w/-])", replacement, text)
    return text


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")


def _line(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    words = text[: limit - 1].rpartition(" ")[0].rstrip()
    return f"{words}…" if " " in text[:limit] else text[:limit]


def _quote(value: str) -> str:
    text = scalar(value)
    return text if text.startswith('"') else f'"{text}"'


def write(
    folder: Path, skills: Mapping[str, Mapping[str, bytes]], entries: Path
) -> tuple[Path, ...]:
    """Write skills into a folder, replacing those of the same name."""
    folder = folder.expanduser().absolute()
    target = folder.resolve()
    if target == entries.resolve() or entries.resolve() in target.parents:
        raise FilesError(f"{folder}: contains the entries themselves; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FilesError(f"{folder}: cannot be made ({error.strerror})") from error
    with Directory.open(target) as root:
        for name in skills:
            if root.stat(name) is not None and not _is_skill_folder(root, name):
                raise PathExistsError(
                    f"{folder / name}: exists and is not a skill; name another folder"
                )
        for name, files in skills.items():
            parts = {parts_of(path): data for path, data in files.items()}
            with private_folder(root, name, parts) as part:
                if root.stat(name) is not None:
                    root.remove(name)
                root.move(part, root, name, name)
    return tuple(folder / name for name in skills)


def _is_skill_folder(root: Directory, name: str) -> bool:
    if not root.is_directory(name):
        return False
    with root.child(name, name) as directory:
        return directory.stat(FILE) is not None
