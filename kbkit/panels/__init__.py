"""Panels for notebooks, built with ipywidgets.

Panels do not import each other; ``dashboard`` shows them in tabs. They share ``panel``,
``controls``, ``render`` and ``text_rendering``. ``static`` has the ES modules of views.
"""

from kbkit.extras import extra, lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__, lambda name: extra("panels", "anywidget", name)
)
