// Runs in the pages of documents. Unfolds sections of the sidebar, whose entries are loaded when they
// are first unfolded, as a script, which also works without a server. Adds the copy button of code
// when it comes near the viewport; the theme would add all at once, which is slow in a page with much
// code. Lets the keyboard scroll wide tables, code and pictures.
import { make, makeButton } from "./elements.js";

const script = /** @type {HTMLScriptElement} */ (document.currentScript);
const HERE = new URL("contents/", script.src);
const ROOT = new URL("../../", script.src);

/** @typedef {[title: string, address: string, id?: string]} Row */

/** @type {Map<string, (rows: Row[]) => void>} */
const callbacks = new Map();

/** @type {any} */ (window).kbkitContents = (/** @type {string} */ id, /** @type {Row[]} */ rows) =>
  callbacks.get(id)?.(rows);

/**
 * @param {string} id
 * @returns {Promise<Row[]>}
 */
function load(id) {
  const element = document.createElement("script");
  return new Promise((resolve, reject) => {
    callbacks.set(id, resolve);
    element.addEventListener("error", reject);
    element.src = new URL(`${id}.js`, HERE).href;
    document.head.append(element);
  });
}

/** @param {Row} row */
function entry([title, address, id]) {
  const link = make("a", { class: "md-nav__link" }, title);
  link.href = new URL(address, ROOT).href;
  const item = make("li", { class: "md-nav__item" }, link);
  if (id) {
    item.dataset.kb = id;
    addButton(item);
  }
  return item;
}

/** @param {HTMLElement} item */
async function toggle(item) {
  const button = /** @type {HTMLButtonElement} */ (item.querySelector(":scope > button"));
  let list = /** @type {HTMLElement | null} */ (item.querySelector(":scope > ul"));
  if (!list) {
    button.disabled = true;
    try {
      const rows = await load(item.dataset.kb ?? "");
      list = make("ul", {}, rows.map(entry));
      item.append(list);
    } catch {
      location.assign(/** @type {HTMLAnchorElement} */ (item.querySelector("a")).href);
      return;
    } finally {
      button.disabled = false;
    }
    button.focus();
  } else {
    list.hidden = !list.hidden;
  }
  item.classList.toggle("kb-open", !list.hidden);
  button.setAttribute("aria-expanded", String(!list.hidden));
}

/** @param {HTMLElement} item */
function addButton(item) {
  const link = /** @type {HTMLElement} */ (item.querySelector(":scope > a"));
  const state = {
    "aria-label": `What is in ${link.textContent}`,
    "aria-expanded": String(item.classList.contains("kb-open")),
  };
  link.after(makeButton("", () => toggle(item), state));
}

// with enough width, the page's table of contents is next to the page
const current = document.querySelector(".kb-contents [aria-current=page]")?.parentElement;
const parts = document.querySelectorAll(".md-sidebar--secondary nav > ul > li > a");
if (current && parts.length && matchMedia("(max-width: 59.984375em)").matches) {
  const links = /** @type {HTMLAnchorElement[]} */ ([...parts]);
  current.append(make("ul", {}, links.map((link) => entry([link.textContent?.trim() ?? "", link.href])))); // prettier-ignore
}

for (const item of document.querySelectorAll(".kb-contents [data-kb]")) {
  addButton(/** @type {HTMLElement} */ (item));
}

// Code and wide elements

const MARGIN = "300px"; // around the viewport

/**
 * The theme's button, which its script handles.
 *
 * @param {Element} pre
 * @param {number} number
 */
function addCopyButton(pre, number) {
  const code = pre.querySelector("code") ?? pre;
  code.id = `kb-code-${number}`; // the theme gives ids to its parents, now or later
  const button = makeButton("", () => {}, {
    class: "md-code__button",
    title: "Copy to clipboard",
    "data-clipboard-target": `pre > #${code.id}`, // excludes a heading with that id
    "data-md-type": "copy",
  });
  pre.prepend(make("div", { class: "md-code__nav" }, button));
}

const copied = script.dataset.copy === undefined ? "none" : "article .highlight > pre";
const blocks = [...document.querySelectorAll(copied)];
const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      addCopyButton(target, blocks.indexOf(target));
    }
  },
  { rootMargin: MARGIN },
);
for (const block of blocks) near.observe(block);

// after the theme has wrapped tables; measures all before changing any
window.addEventListener("load", () => {
  const places = "article :is(.md-typeset__scrollwrap, pre > code, p:has(> svg))";
  const wide = [...document.querySelectorAll(places)];
  for (const element of wide.filter((one) => one.scrollWidth > one.clientWidth)) {
    element.setAttribute("tabindex", "0");
  }
});
