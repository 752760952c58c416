"""How exported pages look beyond the theme; colours are the theme's, light or dark."""

from __future__ import annotations

STYLE = (
    ".md-typeset .kb-meta{color:var(--md-default-fg-color--light);font-size:.68rem;"
    "margin-top:-.8em;overflow-wrap:anywhere}"
    ".md-typeset .kb-badge,.md-typeset .kb-meta strong{border:1px solid;border-radius:.6rem;"
    "padding:0 .4rem;white-space:nowrap;font-weight:400}"
    ".md-typeset .kb-meta strong{color:var(--kb-warning)}"
    ":root{--kb-warning:#a33600}[data-md-color-scheme=slate]{--kb-warning:#ffb08a}"
    ".md-typeset .kb-onwards{border-top:.05rem solid var(--md-default-fg-color--lightest);"
    "margin-top:2.4em;font-size:.7rem;overflow-wrap:anywhere}"
    ".md-typeset svg[role=img]{max-width:100%;height:auto;color:inherit}"
)
