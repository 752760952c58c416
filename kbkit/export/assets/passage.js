// Runs in a page with a passage in its address (`?passage=first words…last words`), as in links of
// results: marks it, and scrolls it into view.
import { findPassage } from "./marking.js";

const LOOK = `
  .md-typeset .kb-passage {
    --kb-tint: color-mix(in srgb, var(--md-accent-fg-color) 9%, var(--md-default-bg-color));
    background-color: var(--kb-tint);
    box-shadow: -0.15rem 0 var(--kb-tint), -0.25rem 0 var(--md-accent-fg-color);
  }`;

/** The target element of the address. */
function target() {
  try {
    return document.getElementById(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return null; // a bare percent sign
  }
}

function mark() {
  const ends = new URLSearchParams(location.search).get("passage") ?? "";
  const article = document.querySelector("article") ?? document.body;
  const match = findPassage(article, ends, target());
  if (!match) return;
  for (const block of match.blocks) block.classList.add("kb-passage");
  const look = new CSSStyleSheet(); // allowed by the page's policy, unlike style elements
  look.replaceSync(LOOK);
  document.adoptedStyleSheets.push(look);
  show(match.first);
}

/**
 * Scrolls to a text, unless it is visible below the target of the address.
 *
 * @param {Text} text
 */
function show(text) {
  const range = document.createRange();
  range.selectNodeContents(text);
  const { top } = range.getBoundingClientRect();
  if (top < 80 || top > innerHeight * 0.7) window.scrollBy({ top: top - innerHeight * 0.3 });
}

const soon = () => requestAnimationFrame(() => requestAnimationFrame(mark));
if (document.readyState === "complete") soon();
else window.addEventListener("load", soon);
