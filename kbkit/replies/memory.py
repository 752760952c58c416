"""What the memory tool answered, for an agent."""

from __future__ import annotations

from kbkit.replies.quotes import part_reply
from kbkit.replies.reply import Budget, Reply, shortened


def memory_reply(answer: str, *, quoted: bool, start: int, budget: Budget) -> Reply:
    """An answer of the memory tool, from a character on.

    Args:
        answer: All of it.
        quoted: Whether it shows what files hold.
        start: How many characters were told before.
        budget: What the reply may take.
    """
    if quoted:
        return part_reply(
            answer, name="memory", said="", values={}, start=start, budget=budget, numbered=False
        )
    said = shortened(answer, budget.room // 2 - 40)
    return Reply(said, {"note": "", "text": said, "next_cursor": ""})
