// What the views of all panels are made of. Text is only ever put into text nodes and attributes
// that cannot run anything, so nothing that a document says is read as HTML.

/**
 * @typedef {string | number | Node | null | undefined | false} Child
 * @typedef {Array<[string, boolean]>} Segments  pieces of text, and whether each is marked
 * @typedef {object} Model  what anywidget gives a view to speak with Python
 * @property {(name: string) => any} get
 * @property {(name: string, callback: (message: any) => void) => void} on
 * @property {(name: string, callback: (message: any) => void) => void} off
 * @property {(message: object) => void} send
 */

const SAFE_ATTRIBUTES =
  /^(class|id|for|role|type|name|value|title|dir|lang|tabindex|placeholder|min|max|step|rows|colspan|rowspan|scope|viewBox|d|x|y|x1|x2|y1|y2|cx|cy|r|width|height|fill|points|aria-[a-z]+|data-[a-z-]+)$/;

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
  const element = document.createElement(tag);
  setAll(element, attributes);
  element.append(...nodes(children));
  return element;
}

/**
 * The same for SVG.
 *
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAll(element, attributes);
  element.append(...nodes(children));
  return element;
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {Node[]}
 */
function nodes(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

/**
 * @param {any} element
 * @param {Record<string, any>} attributes
 */
function setAll(element, attributes) {
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
}

/**
 * A link that opens beside the notebook, or plain text where the address is none of the web.
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
    // no address at all
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
 * Text with marked pieces.
 *
 * @param {Segments} segments
 * @returns {(string | HTMLElement)[]}
 */
export function markSegments(segments) {
  return segments.map(([text, hit]) => (hit ? make("mark", {}, text) : text));
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
 * The element that has the focus, also inside of a shadow root.
 *
 * @param {Node} node  anything in the same tree
 */
export function focusIn(node) {
  return /** @type {Document} */ (node.getRootNode()).activeElement;
}

/**
 * Copy text for the clipboard; where the page may not, the text is selected in a prompt-free way.
 *
 * @param {string} text
 * @returns {Promise<boolean>} whether it was copied
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { style: { position: "fixed", opacity: "0" } });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/**
 * Whether a key is for a view: it was pressed inside, and with no other that makes it a shortcut of
 * the browser. The notebook does not get it then.
 *
 * @param {KeyboardEvent} event
 * @param {Element} root
 */
export function claimKey(event, root) {
  if (!event.composedPath().includes(root) || event.ctrlKey || event.metaKey || event.altKey) {
    return false;
  }
  if (event.key !== "Escape" && event.key !== "Tab") {
    event.stopPropagation();
  }
  return true;
}

/** What draws a widget: made for an element, it draws what a model says until the widget goes. */
export class View {
  /**
   * @param {Model} model
   * @param {HTMLElement} el
   */
  constructor(model, el) {
    this.model = model;
    this.el = el;
    this.ended = new AbortController();
  }

  /**
   * Do something now, and whenever Python changes a value.
   *
   * @param {string} name  of the value
   * @param {() => void} draw
   */
  drawOn(name, draw) {
    this.on(`change:${name}`, draw);
    draw();
  }

  /**
   * @param {string} event  `change:` and a name, or `msg:custom`
   * @param {(message: any) => void} callback
   */
  on(event, callback) {
    this.model.on(event, callback);
    this.ended.signal.addEventListener("abort", () => this.model.off(event, callback));
  }

  /**
   * Hear keys before the notebook does: its own shortcuts listen on the document, where 0 0 restarts
   * the kernel and x cuts a cell.
   *
   * @param {(event: KeyboardEvent) => void} callback
   */
  onKey(callback) {
    window.addEventListener("keydown", callback, { capture: true, signal: this.ended.signal });
  }

  /**
   * Tell Python of an event.
   *
   * @param {string} event
   * @param {object} [values]
   * @returns {boolean} whether it went out; not where the kernel that made the panel is gone
   */
  send(event, values = {}) {
    try {
      this.model.send({ ...values, event });
      return true;
    } catch {
      return false;
    }
  }
}

/**
 * What anywidget asks of a module, made of the class that draws.
 *
 * @param {new (model: Model, el: HTMLElement) => View} Drawing
 */
export function widgetOf(Drawing) {
  return {
    /** @param {{model: Model, el: HTMLElement}} widget */
    render({ model, el }) {
      const view = new Drawing(model, el);
      return () => view.ended.abort();
    },
  };
}
