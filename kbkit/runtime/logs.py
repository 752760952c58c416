"""Logging: quiet by default, one line per record, without secrets.

Loggers are named after the modules, below ``kbkit``. Programs configure handlers themselves; the
command line shows warnings, and more with ``--verbose``.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from kbkit.models.values import plain
from kbkit.runtime.third_party import without_secrets

_MAX = 2_000
"""Maximum characters of a line without ``--log-json``."""


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            message += f" ({type(record.exc_info[1]).__name__}: {record.exc_info[1]})"
        return f"kbkit: {plain(without_secrets(message))[:_MAX]}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
        }
        if record.exc_info:
            values["exception"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(values)


class _LogHandler(logging.StreamHandler[Any]):
    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, value: object) -> None:
        """Ignore the value: the stream is always ``sys.stderr``."""


_handler = _LogHandler()


def is_json() -> bool:
    return isinstance(_handler.formatter, _Json)


def configure(level: int = 0, *, as_json: bool = False) -> None:
    _handler.setFormatter(_Json() if as_json else _Plain())
    logging.getLogger().addHandler(_handler)  # no effect if present
    quiet = logging.ERROR if level < 0 else logging.WARNING
    logging.getLogger().setLevel(quiet)
    logging.getLogger("kbkit").setLevel(logging.DEBUG if level > 0 or as_json else quiet)
    if as_json:
        sys.excepthook = _log_uncaught
        threading.excepthook = _log_exception
        sys.unraisablehook = _log_exception


def _log_exception(raised: threading.ExceptHookArgs | sys.UnraisableHookArgs) -> None:
    _log_uncaught(raised.exc_type, raised.exc_value, raised.exc_traceback)


def _log_uncaught(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    log = logging.getLogger(__name__)
    if issubclass(kind, KeyboardInterrupt):
        log.error("interrupted")
    else:
        log.critical("unexpected %s", kind.__name__, exc_info=(kind, error or kind(), trace))
