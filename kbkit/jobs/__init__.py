"""Background jobs: stored in the catalog, run by threads, resumed after a restart."""

from kbkit.jobs.jobs import Jobs
from kbkit.jobs.tasks import TASKS, Task

__all__ = ["TASKS", "Jobs", "Task"]
