// Text of a document as HTML that Python sanitised, where it can touch nothing around it.

import { make } from "./dom.js";

const RENDERED_STYLE = `
:host { display: block; overflow-wrap: anywhere; line-height: 1.55; }
:host > div > :first-child { margin-top: 0; }
:host > div > :last-child { margin-bottom: 0; }
h1, h2, h3, h4, h5, h6 { margin: 0.9em 0 0.35em; font-size: 1.08em; line-height: 1.35; }
h1 { font-size: 1.2em; }
p, ul, ol, pre, table, blockquote { margin: 0 0 0.7em; }
ul, ol { padding-left: 1.6em; }
a { color: var(--kb-link); }
code, pre { font-family: var(--jp-code-font-family, ui-monospace, monospace); font-size: 0.95em; }
code { padding: 0 3px; border-radius: 3px; background: var(--kb-raised); }
pre { overflow: auto; padding: 8px 10px; border-radius: 6px; background: var(--kb-raised); }
pre code { padding: 0; background: none; }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse; }
th, td { border: 1px solid var(--kb-line); padding: 3px 8px; text-align: left; }
blockquote { margin-left: 0; border-left: 3px solid var(--kb-line); padding-left: 10px; }
hr { border: 0; border-top: 1px solid var(--kb-line); }
.headerlink { display: none; }
`;

/**
 * An element inside a shadow root of another one: neither its ids and classes nor the page's styles
 * reach across.
 *
 * @param {HTMLElement} host
 * @param {string} css  all the styles there are inside
 * @returns {HTMLDivElement}
 */
export function sheltered(host, css) {
  const inside = make("div", { dir: "auto" });
  host.attachShadow({ mode: "open" }).append(make("style", {}, css), inside);
  return inside;
}

/**
 * Fill an element with sanitised HTML. Links open beside the notebook; those that lead nowhere are
 * text.
 *
 * @param {HTMLElement} element
 * @param {string} html  what nh3 let through
 * @param {RegExp} leads  addresses that a link may have; those of the page itself begin with `#`
 */
export function fillRendered(element, html, leads = /^https?:\/\//i) {
  element.innerHTML = html;
  for (const link of element.querySelectorAll("a")) {
    const href = link.getAttribute("href") ?? "";
    if (!leads.test(href)) {
      link.removeAttribute("href");
    } else if (!href.startsWith("#")) {
      link.setAttribute("target", "_blank");
      link.setAttribute("rel", "noopener noreferrer nofollow");
    }
  }
}

/**
 * An element of its own that shows sanitised HTML.
 *
 * @param {string} html  what nh3 let through
 */
export function makeRendered(html) {
  const host = make("div", { class: "kbkit-rendered", dir: "auto" });
  const body = sheltered(host, RENDERED_STYLE);
  fillRendered(body, html);
  // wide code and tables scroll, so the keyboard has to reach them
  for (const wide of body.querySelectorAll("pre, table")) {
    wide.setAttribute("tabindex", "0");
  }
  return host;
}
