"""Background jobs: stored in the catalog, run by threads, resumed after a restart."""

from kbkit.server.jobs.jobs import Jobs
from kbkit.server.jobs.tasks import TASKS, JobTask

__all__ = ["TASKS", "JobTask", "Jobs"]
