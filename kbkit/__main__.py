"""``python -m kbkit`` is the command ``kbkit``."""

from kbkit.cli import main

main()
