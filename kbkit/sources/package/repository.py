"""Find the source repository of an installed package in its metadata."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from importlib import metadata
from urllib.parse import urlsplit

from kbkit.models import License
from kbkit.models.licenses import known_name

_FORGES = re.compile(r"(?:^|\.)(?:github\.com|gitlab\.[a-z.]+|codeberg\.org|bitbucket\.org)$")
_NOTICE = re.compile(r"(?:copyright|\(c\)|©).*\d", re.IGNORECASE)
_NAMES = ("source", "sourcecode", "repository", "code", "github", "gitlab", "homepage")


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a package; each part may be ``""``.

    Attributes:
        commit: Installed commit, if pip recorded it.
    """

    distribution: str = ""
    version: str = ""
    repository: str = ""
    commit: str = ""
    license: License = field(default_factory=License)

    @property
    def url(self) -> str:
        """Address of the code: of the very commit if it is known, else of the repository.

        Never of a file or a tag: neither the layout of the repository nor the names of its tags
        and branches follow from what is installed.
        """
        if self.repository and self.commit:
            middle = (
                "/-/tree/" if "gitlab" in (urlsplit(self.repository).hostname or "") else "/tree/"
            )
            return f"{self.repository}{middle}{self.commit}"
        return self.repository


def origin_of(name: str) -> Origin:
    top = name.partition(".")[0]
    for distribution in metadata.packages_distributions().get(top, [top]):
        try:
            found = metadata.distribution(distribution)
        except metadata.PackageNotFoundError:
            continue
        repository, commit = _installed_from(found)
        return Origin(
            distribution,
            found.version or "",
            repository or _declared(found),
            commit,
            _license(found),
        )
    return Origin()


def _installed_from(found: metadata.Distribution) -> tuple[str, str]:
    """Repository and commit that pip installed from (PEP 610), else empty."""
    try:
        noted = json.loads(found.read_text("direct_url.json") or "{}")
        commit = str(noted["vcs_info"]["commit_id"])
        address = repository(str(noted["url"]))
    except (ValueError, LookupError, TypeError, OSError):
        return "", ""
    return (address, commit) if address and re.fullmatch(r"[0-9a-f]{40}", commit) else ("", "")


def _license(found: metadata.Distribution) -> License:
    """Return the license in the metadata: the expression (PEP 639), else the old field."""
    about = found.metadata

    def values(key: str) -> list[str]:
        return [str(value).strip() for value in about.get_all(key) or []]

    classified = [
        line.rpartition("::")[2].strip()
        for line in values("Classifier")
        if line.startswith("License ::") and line.count("::") > 1
    ]
    # some packages have put the whole text of their license there
    written = [line.strip() for text in values("License") for line in text.split("\n")]
    named = [*values("License-Expression"), *written[:1], *classified]
    stated = [License.stated(name) for name in named if not _NOTICE.match(name)]
    known = next((license for license in stated if known_name(license.name)), None)
    notice = next((line for line in written if _NOTICE.match(line)), "")
    license = known or next(filter(None, stated), License())
    return license.or_else(License.stated(attribution=notice))


def _declared(found: metadata.Distribution) -> str:
    """The repository that the metadata names: under a fitting label first, then under any."""
    labelled: dict[str, str] = {}
    for line in found.metadata.get_all("Project-URL") or []:
        label, _, url = line.partition(",")
        labelled.setdefault(re.sub(r"[\W_]", "", label).lower(), url.strip())
    labelled.setdefault("homepage", (found.metadata.get_all("Home-page") or [""])[0])
    for label in _NAMES:
        if address := repository(labelled.get(label, "")):
            return address
    return next((address for url in labelled.values() if (address := repository(url))), "")


def repository(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return ""
    path = parts.path.split("/-/")[0]
    segments = [segment for segment in path.split("/") if segment]
    if parts.scheme not in ("http", "https") or not _FORGES.search(host) or len(segments) < 2:
        return ""
    if segments[0] in ("sponsors", "orgs", "users"):
        return ""
    # GitLab has groups in groups, where a view of the repository begins with "-"
    kept = segments if host.startswith("gitlab") and "/-/" in parts.path else segments[:2]
    if not all(re.fullmatch(r"[\w.+-]+", segment) for segment in kept):
        return ""
    return f"https://{host}/" + "/".join(kept).removesuffix(".git")
