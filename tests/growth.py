"""Check that time grows no faster than the input."""

import time
from collections.abc import Callable


def grows_with(work: Callable[[int], object], size: int, times: int = 8) -> None:
    """Fail if work of 8 times the size takes more than 24 times the processor time.

    Work of linear time takes 8 times as long, and work of quadratic time 64 times.
    """

    def seconds(amount: int) -> float:
        began = time.process_time()
        work(amount)
        return time.process_time() - began

    most = 3 * times * max(0.01, *(seconds(size) for _ in range(2)))
    took = [seconds(size * times)]
    while took[-1] > most and len(took) < 3:
        took.append(seconds(size * times))
    assert took[-1] <= most, f"{took} s, more than {most:.3f} s"
