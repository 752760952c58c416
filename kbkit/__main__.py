"""Run the command ``kbkit`` as ``python -m kbkit``."""

from kbkit.cli import main

main()
