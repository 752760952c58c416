// Runs in exported pages: unfolds sections of the sidebar. The entries of a section are loaded when
// it is first unfolded, as a script, which also works without a server.

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
  const item = document.createElement("li");
  item.className = "md-nav__item";
  const link = document.createElement("a");
  link.className = "md-nav__link";
  link.href = new URL(address, ROOT).href;
  link.textContent = title;
  item.append(link);
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
      list = document.createElement("ul");
      list.append(...rows.map(entry));
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
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-label", `What is in ${link.textContent}`);
  button.setAttribute("aria-expanded", String(item.classList.contains("kb-open")));
  button.addEventListener("click", () => toggle(item));
  link.after(button);
}

// with enough width, the page's table of contents is next to the page
const current = document.querySelector(".kb-contents [aria-current=page]")?.parentElement;
const parts = document.querySelectorAll(".md-sidebar--secondary nav > ul > li > a");
if (current && parts.length && matchMedia("(max-width: 59.984375em)").matches) {
  const list = document.createElement("ul");
  for (const part of parts) {
    const link = /** @type {HTMLAnchorElement} */ (part);
    list.append(entry([link.textContent?.trim() ?? "", link.href]));
  }
  current.append(list);
}

for (const item of document.querySelectorAll(".kb-contents [data-kb]")) {
  addButton(/** @type {HTMLElement} */ (item));
}
