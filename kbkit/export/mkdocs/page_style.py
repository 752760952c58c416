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
    # On a phone, pictures with words scroll rather than shrink until nobody can read them
    "@media(max-width:40em){.md-typeset p:has(>svg[role=img]){overflow-x:auto}"
    ".md-typeset svg[role=img]{max-width:none}}"
    # Text that is written from right to left, wherever it stands
    ".md-typeset :is(h1,h2,h3,h4,h5,h6,p,li,td,th){unicode-bidi:plaintext}"
    # Links are told from the text around them by more than their colour
    ".md-typeset :is(p,li,td,th,h2) a:not(.headerlink){text-decoration:underline;"
    "text-decoration-color:color-mix(in srgb,currentColor 45%,transparent);"
    "text-decoration-thickness:.06em;text-underline-offset:.18em}"
    ".md-typeset :is(p,li,td,th,h2) a:is(:hover,:focus){text-decoration-color:currentColor}"
    # Small text and comments in code in colours that have enough contrast
    "body[data-md-color-scheme=default]{--md-default-fg-color--light:#0000009e;"
    "--md-code-hl-comment-color:#5c5f66;--md-code-hl-generic-color:#5c5f66;"
    "--md-code-hl-operator-color:#5c5f66;--md-code-hl-punctuation-color:#5c5f66}"
    "body[data-md-color-scheme=slate]{--md-code-hl-number-color:#ee8679;"
    "--md-code-hl-constant-color:#a496ea;--md-code-hl-special-color:#ee7ba6}"
)
