// A canvas with a camera that mouse, touch and keys move.
import { focusIn } from "./elements.js";
import { zoomAt } from "./geometry.js";

const GLIDE = 260; // milliseconds
const KEY_STEP = 60; // pixels
const REST = 140; // milliseconds until a moved picture is at rest
const DOUBLE = 350; // milliseconds between the clicks of a double click
const STILL = 4; // pixels that a pressed pointer may move in a click

/**
 * @typedef {object} Handlers
 * @property {() => void} paint  draws now
 * @property {() => import("./geometry.js").Camera} overview  the camera that sees all
 * @property {(x: number, y: number) => void} point  in pixels
 * @property {() => void} unpoint
 * @property {(x: number, y: number, coarse: boolean) => void} press  `coarse`: by a finger
 * @property {() => void} escape
 * @property {AbortSignal} signal  ends it
 */

export class Viewport {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Handlers} handlers
   */
  constructor(canvas, handlers) {
    this.canvas = canvas;
    this.handlers = handlers;
    const { signal } = handlers;
    this.size = { width: 0, height: 0 };
    this.camera = { x: 0, y: 0, scale: 1 };
    /** Whether to show all nodes after a change of size. */
    this.fitted = true;
    this.frame = 0;
    this.gliding = 0;
    /** The timer of a moving picture. */
    this.moving = 0;
    /** @type {Map<number, {x: number, y: number}>} */
    this.pointers = new Map();
    this.moved = 0;
    this.pressed = { x: 0, y: 0, at: -Infinity };
    this.listen(signal);
    const sizes = new ResizeObserver(() => this.resize());
    sizes.observe(canvas);
    signal.addEventListener("abort", () => {
      sizes.disconnect();
      cancelAnimationFrame(this.frame);
      cancelAnimationFrame(this.gliding);
      clearTimeout(this.moving);
    });
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) {
      return;
    }
    this.size = { width, height };
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    if (this.fitted) {
      this.camera = this.handlers.overview();
    }
    this.handlers.paint();
  }

  /** Draw with the next frame. */
  draw() {
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.handlers.paint();
      });
    }
  }

  /** @param {boolean} [glides] */
  fitAll(glides = true) {
    this.moveTo(this.handlers.overview(), glides);
    this.fitted = true;
  }

  /** @param {number} factor */
  zoom(factor) {
    const { width, height } = this.size;
    this.moveTo(zoomAt(this.camera, this.size, width / 2, height / 2, factor), true);
  }

  /**
   * @param {import("./geometry.js").Camera} camera
   * @param {boolean} glides
   */
  moveTo(camera, glides) {
    this.fitted = false;
    cancelAnimationFrame(this.gliding);
    if (!glides || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.look(camera);
      return;
    }
    const from = this.camera;
    const begun = performance.now();
    /** @param {number} now */
    const step = (now) => {
      const part = Math.min(Math.max((now - begun) / GLIDE, 0), 1);
      const eased = 1 - (1 - part) ** 3;
      this.look({
        x: from.x + (camera.x - from.x) * eased,
        y: from.y + (camera.y - from.y) * eased,
        scale: from.scale * (camera.scale / from.scale) ** eased,
      });
      if (part < 1) {
        this.gliding = requestAnimationFrame(step);
      }
    };
    this.gliding = requestAnimationFrame(step);
  }

  /** @param {import("./geometry.js").Camera} camera */
  look(camera) {
    this.camera = camera;
    clearTimeout(this.moving);
    this.moving = window.setTimeout(() => {
      this.moving = 0;
      this.draw();
    }, REST);
    this.draw();
  }

  /**
   * @param {number} x  of the graph
   * @param {number} y
   */
  pixel(x, y) {
    const { camera, size } = this;
    return [
      (x - camera.x) * camera.scale + size.width / 2,
      (y - camera.y) * camera.scale + size.height / 2,
    ];
  }

  // Mouse, touch and keys

  /** @param {AbortSignal} signal */
  listen(signal) {
    const { canvas } = this;
    const on = /** @type {(name: string, heard: (event: any) => void) => void} */ (
      (name, heard) => canvas.addEventListener(name, heard, { signal, passive: false })
    );
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", (event) => this.pointers.delete(event.pointerId));
    on("pointerleave", () => this.handlers.unpoint());
    on("dblclick", (event) => this.zoomBy(event, 1.8));
    on("wheel", (event) => this.wheel(event));
    on("keydown", (event) => this.key(event));
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button) {
      return;
    }
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.moved = this.pointers.size > 1 ? Infinity : 0;
  }

  /** @param {PointerEvent} event */
  move(event) {
    const here = { x: event.offsetX, y: event.offsetY };
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.handlers.point(here.x, here.y);
      return;
    }
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, here);
    this.moved += Math.hypot(here.x - before.x, here.y - before.y);
    if (this.moved < STILL) {
      return;
    }
    let { camera } = this;
    const share = other ? 0.5 : 1; // the middle of two fingers moves half as far
    camera = {
      ...camera,
      x: camera.x - ((here.x - before.x) * share) / camera.scale,
      y: camera.y - ((here.y - before.y) * share) / camera.scale,
    };
    if (other) {
      const far = Math.hypot(before.x - other.x, before.y - other.y);
      const factor = Math.hypot(here.x - other.x, here.y - other.y) / Math.max(far, 1);
      camera = zoomAt(camera, this.size, (here.x + other.x) / 2, (here.y + other.y) / 2, factor);
    }
    this.moveTo(camera, false);
  }

  /** @param {PointerEvent} event */
  up(event) {
    const pressed = this.pointers.delete(event.pointerId);
    if (!pressed || this.moved >= STILL) {
      return;
    }
    const { offsetX: x, offsetY: y, timeStamp: at } = event;
    const before = this.pressed;
    this.pressed = { x, y, at };
    // the node of the first click may have moved before the second
    if (at - before.at > DOUBLE || Math.hypot(x - before.x, y - before.y) > 24) {
      this.handlers.press(x, y, event.pointerType !== "mouse");
    }
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    // the wheel scrolls the page unless the picture is in use
    if (!event.ctrlKey && !event.metaKey && focusIn(this.canvas) !== this.canvas) {
      return;
    }
    const unit = event.deltaMode === 1 ? 16 : 1;
    this.zoomBy(event, Math.exp((-event.deltaY * unit) / (event.ctrlKey ? 120 : 420)));
  }

  /**
   * @param {MouseEvent} event
   * @param {number} factor
   */
  zoomBy(event, factor) {
    event.preventDefault();
    this.moveTo(zoomAt(this.camera, this.size, event.offsetX, event.offsetY, factor), false);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    /** @type {(dx: number, dy: number) => void} */
    const pan = (dx, dy) => {
      const { x, y, scale } = this.camera;
      const step = KEY_STEP / scale;
      this.moveTo({ x: x + dx * step, y: y + dy * step, scale }, false);
    };
    /** @type {Record<string, () => void>} */
    const does = {
      ArrowLeft: () => pan(-1, 0),
      ArrowRight: () => pan(1, 0),
      ArrowUp: () => pan(0, -1),
      ArrowDown: () => pan(0, 1),
      "+": () => this.zoom(1.4),
      "=": () => this.zoom(1.4),
      "-": () => this.zoom(1 / 1.4),
      0: () => this.fitAll(),
      Escape: () => this.handlers.escape(),
    };
    if (Object.hasOwn(does, event.key)) {
      event.preventDefault();
      does[event.key]();
    }
    if (event.key !== "Tab") {
      event.stopPropagation(); // notebooks handle keys, too
    }
  }
}
