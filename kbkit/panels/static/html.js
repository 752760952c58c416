// Text of a document: HTML sanitised by Python, isolated from the page.
import { make } from "../../export/assets/elements.js";

const WHOLE = 32; // characters of code in prose that stay on one line, such as an option

/** All styles of the shadow root; colours are custom properties of the panel. */
const STYLE = `
:host { display: block; line-height: 1.55; overflow-wrap: anywhere; }
:host > div > :first-child { margin-top: 0; }
:host > div > :last-child { margin-bottom: 0; }
h1, h2, h3, h4, h5, h6 { margin: 1em 0 0.4em; font-size: 1em; line-height: 1.3; }
h1 { font-size: 1.4em; }
h2 { font-size: 1.25em; }
h3 { font-size: 1.12em; }
:host(.kbkit-passage) :is(h1, h2, h3) { font-size: 1.1em; }
p, ul, ol, blockquote, pre, table { margin: 0 0 0.65em; }
ul, ol { padding-inline-start: 1.6em; }
a { color: var(--kb-link); }
:is(a, table, pre):focus-visible { outline: 2px solid var(--kb-dense); }
.headerlink { display: none; }
blockquote, .admonition { border-inline-start: 3px solid var(--kb-line); padding-inline-start: 12px; color: var(--kb-soft); }
code, pre { font-family: var(--jp-code-font-family, ui-monospace, monospace); font-size: 0.94em; }
code { border-radius: 3px; padding: 1px 4px; background: var(--kb-raised); }
.whole { white-space: nowrap; }
pre { border-radius: 6px; padding: 9px 12px; background: var(--kb-raised); overflow: auto; overflow-wrap: normal; }
pre code { padding: 0; background: none; font-size: 1em; }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse; overflow-wrap: normal; }
th, td { border: 1px solid var(--kb-line); padding: 4px 9px; text-align: start; vertical-align: top; }
th { background: var(--kb-raised); }
hr { border: 0; border-top: 1px solid var(--kb-line); }
.passage { --tint: color-mix(in srgb, var(--kb-mark) 40%, var(--kb-page)); background: var(--tint); box-shadow: -4px 0 var(--tint), -6px 0 var(--kb-dense); }
.k, .kc, .kd, .kn, .kr, .kt, .ow { color: var(--kb-code-word); }
.s, .s1, .s2, .sa, .sb, .sc, .sd, .se, .sh, .si, .sr, .ss, .sx, .dl { color: var(--kb-code-text); }
.c, .c1, .ch, .cm, .cp, .cs, .go, .gp { color: var(--kb-code-note); }
.m, .mb, .mf, .mh, .mi, .mo, .il, .na, .nb, .no { color: var(--kb-code-value); }
.nf, .nc, .nd, .nt, .fm { color: var(--kb-code-name); }
`;

/**
 * An element with a shadow root, which isolates its ids, classes and styles from the page.
 *
 * @param {Record<string, any>} attributes
 */
export function makeShadow(attributes) {
  const host = make("div", { dir: "auto", ...attributes });
  const inside = make("div", { dir: "auto" });
  host.attachShadow({ mode: "open" }).append(make("style", {}, STYLE), inside);
  return { host, inside };
}

/**
 * Fill an element with sanitised HTML. Links open in a new tab; those not allowed become text.
 *
 * @param {HTMLElement} element
 * @param {string} html  sanitised by nh3
 * @param {RegExp} allowed  allowed addresses; those within the page start with `#`
 */
export function fillHtml(element, html, allowed = /^https?:\/\//i) {
  element.innerHTML = html;
  for (const link of element.querySelectorAll("a")) {
    const href = link.getAttribute("href") ?? "";
    if (!allowed.test(href)) {
      link.removeAttribute("href");
    } else if (!href.startsWith("#")) {
      link.setAttribute("target", "_blank");
      link.setAttribute("rel", "noopener noreferrer nofollow");
    }
  }
  // wide tables and code scroll, so the keyboard must reach them
  element.querySelectorAll("table, pre").forEach((wide) => wide.setAttribute("tabindex", "0"));
  for (const code of element.querySelectorAll("code")) {
    code.classList.toggle("whole", (code.textContent ?? "").length <= WHOLE);
  }
}

/**
 * A passage as sanitised HTML.
 *
 * @param {string} html  sanitised by nh3
 */
export function makePassage(html) {
  const { host, inside } = makeShadow({ class: "kbkit-passage" });
  fillHtml(inside, html);
  return host;
}
