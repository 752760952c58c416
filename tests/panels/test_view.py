"""Traits of views."""

import pytest
import traitlets

import kbkit.panels
from kbkit.panels.panel import View
from kbkit.panels.search_results import CardsView


@pytest.mark.parametrize("name", ["style", "layout", "tooltip", "comm"])
def test_view_refuses_trait_names_of_ipywidgets(name: str) -> None:
    trait = traitlets.Unicode().tag(sync=True)
    with pytest.raises(TypeError, match=rf"Drawn\.{name}: ipywidgets has a trait of that name"):
        type("Drawn", (View,), {name: trait})


def test_views_use_no_trait_names_of_ipywidgets() -> None:
    for panel in kbkit.panels.__all__:
        assert getattr(kbkit.panels, panel)
    views = View.__subclasses__()
    assert {"CardsView", "DocumentView", "TreeView"} <= {view.__name__ for view in views}
    for view in views:
        own = set(view.class_own_traits(sync=True)) - {"_esm", "_css", "_anywidget_id"}
        assert not own & {"style", "layout", "tooltip", "tabbable"}, view


def test_module_of_a_view_is_one_script_without_comments() -> None:
    script = CardsView._esm
    assert script.endswith(".widget;\n")
    assert "import {" not in script
    assert " * @param" not in script
