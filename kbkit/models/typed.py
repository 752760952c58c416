"""DataFrames whose columns have the same types however many rows there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbkit.extras import whole

if TYPE_CHECKING:
    import pandas as pd

TIME = "datetime64[us, UTC]"
"""Type of a column of UTC times."""


def typed_frame(
    rows: Sequence[Mapping[str, Any]], types: Mapping[str, str | Sequence[str]]
) -> pd.DataFrame:
    """Rows as a DataFrame.

    Args:
        rows: Values by column; other values are left out.
        types: Type of each column, in order: a dtype's name, or the categories there may be.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    with whole("A DataFrame"):
        import pandas as pd

    columns = {}
    for name, dtype in types.items():
        wanted = dtype if isinstance(dtype, str) else pd.CategoricalDtype(list(dtype))
        columns[name] = pd.Series([row[name] for row in rows], dtype=wanted)
    return pd.DataFrame(columns)
