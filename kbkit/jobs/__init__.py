"""Long work behind an answer: kept in the catalog, done by threads, taken up after a restart."""

from kbkit.jobs.jobs import Jobs
from kbkit.jobs.tasks import TASKS, Task

__all__ = ["TASKS", "Jobs", "Task"]
