"""``python -m kbkit.cli``."""

from kbkit.cli import main

main()
