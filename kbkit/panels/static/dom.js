// What the views of all panels are made of: how they speak with Python, and with keys.
import { make } from "../../export/assets/elements.js";

/**
 * @typedef {Array<[string, boolean]>} Segments  pieces of text, and whether each is marked
 * @typedef {object} Model  what anywidget gives a view to speak with Python
 * @property {(name: string) => any} get
 * @property {(name: string, callback: (message: any) => void) => void} on
 * @property {(name: string, callback: (message: any) => void) => void} off
 * @property {(message: object) => void} send
 */

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
    this.held = false;
    /** @type {Set<() => void>} */
    this.due = new Set();
    const { signal } = this.ended;
    const hold = (/** @type {PointerEvent} */ { button, target }) => {
      this.held = button === 0 && !(target instanceof HTMLSelectElement);
    };
    const release = (/** @type {Event} */ event) => {
      if (this.held && !(event instanceof PointerEvent && event.buttons & 1)) {
        this.held = false;
        setTimeout(() => this.drawDue()); // behind the click
      }
    };
    el.addEventListener("pointerdown", hold, { capture: true, signal });
    for (const event of ["pointerup", "pointercancel", "pointermove"]) {
      window.addEventListener(event, release, { capture: true, signal });
    }
    window.addEventListener("blur", release, { signal }); // of the window, not of its elements
  }

  /**
   * Draw now, or when the mouse is released: a browser drops a click whose target moved meanwhile.
   *
   * @param {() => void} draw
   */
  whenReleased(draw) {
    this.due.delete(draw);
    this.due.add(draw);
    if (!this.held) {
      this.drawDue();
    }
  }

  drawDue() {
    const { due } = this;
    this.due = new Set();
    due.forEach((draw) => draw());
  }

  /**
   * Do something now, and whenever Python changes a value.
   *
   * @param {string} name  of the value
   * @param {() => void} draw
   */
  drawOn(name, draw) {
    this.on(`change:${name}`, () => this.whenReleased(draw));
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
