// Base of the views of all panels: messages to Python, and keys.
import { make } from "../../export/assets/elements.js";

/**
 * @typedef {Array<[string, boolean]>} Segments  pieces of text, and whether each is marked
 * @typedef {object} Model  anywidget's connection to Python
 * @property {(name: string) => any} get
 * @property {(name: string, callback: (message: any) => void) => void} on
 * @property {(name: string, callback: (message: any) => void) => void} off
 * @property {(message: object) => void} send
 * @typedef {{model: Model, el: HTMLElement}} Widget
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
 * Copy text to the clipboard; if the page may not, through a selection.
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
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

/**
 * Whether a view handles a key: pressed inside, without a modifier of browser shortcuts. Hides it
 * from the notebook, except Escape and Tab.
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

/** Draws a model into an element until the widget closes. */
export class View {
  /** @param {Widget} widget */
  constructor({ model, el }) {
    this.model = model;
    this.el = el;
    this.ended = new AbortController();
    this.pressed = false;
    /** @type {Set<() => void>} */
    this.due = new Set();
    const { signal } = this.ended;
    const hold = (/** @type {PointerEvent} */ { button, target }) => {
      this.pressed = button === 0 && !(target instanceof HTMLSelectElement);
    };
    const release = (/** @type {Event} */ event) => {
      if (this.pressed && !(event instanceof PointerEvent && event.buttons & 1)) {
        this.pressed = false;
        setTimeout(() => this.drawDue()); // after the click
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
    if (!this.pressed) {
      this.drawDue();
    }
  }

  drawDue() {
    const { due } = this;
    this.due = new Set();
    due.forEach((draw) => draw());
  }

  /**
   * Draw now, and whenever Python changes a value.
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
   * Handle keys before the notebook: its shortcuts listen on the document, where 0 0 restarts the
   * kernel and x cuts a cell.
   *
   * @param {(event: KeyboardEvent) => void} callback
   */
  onKey(callback) {
    window.addEventListener("keydown", callback, { capture: true, signal: this.ended.signal });
  }

  /**
   * Send an event to Python.
   *
   * @param {string} event
   * @param {object} [values]
   * @returns {boolean} whether it was sent; false if the panel's kernel is gone
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
 * The widget of a view class, as anywidget expects it.
 *
 * @param {new (widget: Widget) => View} Drawing
 */
export function widgetOf(Drawing) {
  return {
    /** @param {Widget} widget */
    render(widget) {
      const view = new Drawing(widget);
      return () => view.ended.abort();
    },
  };
}
