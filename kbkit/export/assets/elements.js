// Elements of pages and panels. Texts are set only as text nodes and harmless attributes, so that
// no text of a document is parsed as HTML.

/** @typedef {string | number | Node | null | undefined | false} Child */

const SAFE_ATTRIBUTES =
  /^(class|id|for|role|type|name|value|title|dir|lang|tabindex|placeholder|min|max|step|rows|colspan|rowspan|scope|aria-[a-z]+|data-[a-z-]+)$/;

/**
 * An element.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [attributes]  names with `on` take functions; `true` sets a bare
 *   attribute, `false`, `null` and `undefined` none; `style` takes an object of properties
 * @param {...(Child | Child[])} children  strings become text
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, attributes = {}, ...children) {
  /** @type {any} */
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), value);
    } else if (name === "style") {
      Object.assign(element.style, value);
    } else if (["checked", "disabled", "hidden", "open", "selected"].includes(name)) {
      element[name] = Boolean(value);
    } else if (!SAFE_ATTRIBUTES.test(name)) {
      throw new Error(`${name}: not an attribute that views set`);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  const shown = children.flat().filter((child) => child !== null && child !== undefined && child !== false); // prettier-ignore
  element.append(...shown);
  return element;
}

/**
 * @param {Child | Child[]} content
 * @param {(event: any) => void} onclick
 * @param {Record<string, any>} [attributes]
 */
export function makeButton(content, onclick, attributes = {}) {
  return make("button", { type: "button", onclick, ...attributes }, content);
}

/**
 * A link that opens in a new tab, or plain text if it is not a web address.
 *
 * @param {string} address
 * @param {Record<string, any>} attributes
 * @param {...(Child | Child[])} children
 */
export function makeLink(address, attributes, ...children) {
  let url = null;
  try {
    url = new URL(address);
  } catch {
    // an invalid address
  }
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    return make("span", attributes, ...children);
  }
  const link = make("a", attributes, ...children);
  link.setAttribute("href", url.href);
  link.setAttribute("target", "_blank");
  link.setAttribute("rel", "noopener noreferrer nofollow");
  return link;
}

/**
 * Change a text only if it differs, so that screen readers do not read it again.
 *
 * @param {Node} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/**
 * The focused element, also inside a shadow root.
 *
 * @param {Node} node  anything in the same tree
 */
export function focusIn(node) {
  return /** @type {Document} */ (node.getRootNode()).activeElement;
}

/**
 * Scroll a list, but not the page, until an item is visible.
 *
 * @param {Element} list
 * @param {Element} item
 */
export function showIn(list, item) {
  const [outer, inner] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
  list.scrollTop += Math.max(0, inner.bottom - outer.bottom) - Math.max(0, outer.top - inner.top);
  list.scrollLeft += Math.max(0, inner.right - outer.right) - Math.max(0, outer.left - inner.left);
}

/**
 * The place in a list to which a key moves; null for other keys.
 *
 * @param {string} key
 * @param {number} at  the current place
 * @param {number} size  of the list
 * @param {number} [page]  lines of a page
 */
export function placeAfter(key, at, size, page = 10) {
  /** @type {Record<string, number>} */
  const places = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: size - 1 }; // prettier-ignore
  return Object.hasOwn(places, key) ? Math.max(0, Math.min(places[key], size - 1)) : null;
}
