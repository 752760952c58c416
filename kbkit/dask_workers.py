"""The workers of a cluster of Dask, and which of them can do the work."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client

_log = logging.getLogger(__name__)

_ANSWER = 10  # seconds until a worker has to answer
_SILENT = 30  # seconds without a sign of life after which a worker counts as one that hangs
_NO_ANSWER = "does not answer"


@dataclass(slots=True)
class _Known:
    """What is known of a worker.

    Attributes:
        fault: Why it can never do the work; ``""`` where it can.
        seen: When its scheduler last heard of it, by the clock of that.
        since: When that became known here, by this clock.
    """

    fault: str
    seen: float
    since: float


class ClusterWorkers:
    """The workers of a cluster, as they were found by the last look.

    Args:
        client: Of the cluster.
        name: What messages call that.

    Attributes:
        fit: Addresses of those that can do the work.
        unfit: Why the others cannot, by address: they hang, or have no kbkit or another one.
        faulty: Those of them that never can.
    """

    def __init__(self, client: Client, name: str) -> None:
        self.fit: frozenset[str] = frozenset()
        self.unfit: dict[str, str] = {}
        self.faulty: dict[str, str] = {}
        self._client = client
        self._name = name
        self._known: dict[str, _Known] = {}

    def look(self) -> dict[str, str]:
        """Look at them now.

        Returns:
            Those that became unfit, and why.

        Raises:
            Exception: Whatever Dask raises where the scheduler does not answer.
        """
        scheduler = self._client.scheduler
        assert scheduler is not None
        told = self._client.sync(scheduler.identity, callback_timeout=_ANSWER)
        before, self._known = self._known, {}
        unfit: dict[str, str] = {}
        for worker, each in told["workers"].items():
            known = before.get(worker) or self._examined(worker)
            if known is not None:
                self._known[worker] = known
                # clocks of machines differ: what counts is that it is heard of anew
                if known.seen != each["last_seen"]:
                    known.seen, known.since = each["last_seen"], time.monotonic()
            if reason := self._reason(known):
                unfit[worker] = reason
        became = {worker: unfit[worker] for worker in unfit.keys() - self.unfit.keys()}
        self.fit, self.unfit = frozenset(told["workers"].keys() - unfit.keys()), unfit
        self.faulty = {worker: each.fault for worker, each in self._known.items() if each.fault}
        return became

    def _reason(self, known: _Known | None) -> str:
        """Why a worker cannot do the work now."""
        if known is None:
            return _NO_ANSWER
        if not known.fault and time.monotonic() - known.since > _SILENT:
            return f"has given no sign of life for {_SILENT} s"
        return known.fault

    def _examined(self, worker: str) -> _Known | None:
        """A worker that was not known; nothing where it does not answer, and is asked again."""
        ours = version("kbkit")
        try:
            theirs = self._client.run(
                version, "kbkit", workers=[worker], callback_timeout=_ANSWER
            )[worker]  # fmt: skip
        except PackageNotFoundError:
            theirs = ""
        except Exception as error:  # it hangs, or is gone by now
            _log.debug("%s: its worker %s: %s", self._name, worker, error)
            return None
        has = f"kbkit {theirs}" if theirs else "no kbkit"
        mend = f"has {has}; install kbkit {ours} where it runs, and start it again"
        return _Known("" if theirs == ours else mend, 0.0, time.monotonic())
