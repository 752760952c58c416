"""Value objects of all layers. Frozen, typed, free of third-party types."""

import logging

from kbkit.extras import lazy_names

# quiet until a program configures logging; not in `kbkit`, whose import is faster without
logging.getLogger("kbkit").addHandler(logging.NullHandler())

__getattr__, __dir__, __all__ = lazy_names(__name__)
