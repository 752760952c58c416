// Draws a graph on a canvas. It knows nothing of what stands beside the picture; `graph.js` does.
import { PointIndex, between, drawnRadius, fit, placeLabels, shortened } from "./geometry.js";
import { outline, shapeOf } from "./shapes.js";
import { Viewport } from "./viewport.js";

/**
 * @typedef {object} GraphNode
 * @property {string} id
 * @property {string} name
 * @property {string} type
 * @property {number} x
 * @property {number} y
 * @property {number} radius
 * @typedef {object} GraphEdge
 * @property {number} source  number of a node
 * @property {number} target
 * @property {string} name
 * @property {number} weight  above 0 to 1
 * @typedef {object} Looks  colours, as CSS writes them
 * @property {string} page
 * @property {string} text
 * @property {string} line
 * @property {string} accent
 * @property {string} gap
 * @property {(type: string) => string} fill
 * @property {string} font
 * @typedef {object} Shown  what is drawn how
 * @property {Uint8Array} nodes  1 for each that is drawn
 * @property {Uint8Array} edges
 * @property {number} selected  number of a node, or -1
 * @property {number} pointed
 * @property {Set<number> | null} marked  those that are not faint; null for all
 * @property {Set<number>} gaps
 */

const STEPS = 4; // of opacity
const LONGEST_LABEL = 36;
const ARROWS_FROM = 0.9; // scale
const SMALLEST_LABELLED = 3.4; // pixels
const MOST_NAMED_EDGES = 24;

class GraphCanvas extends Viewport {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {object} handlers
   * @param {(node: number) => void} handlers.onSelect  -1 where there is none
   * @param {(node: number) => void} handlers.onPoint
   * @param {AbortSignal} handlers.signal  ends it
   */
  constructor(canvas, { onSelect, onPoint, signal }) {
    super(canvas, signal);
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.onSelect = onSelect;
    this.onPoint = onPoint;
    /** @type {GraphNode[]} */
    this.nodes = [];
    /** @type {GraphEdge[]} */
    this.edges = [];
    /** @type {Set<number>[]} */
    this.near = [];
    this.index = new PointIndex([]);
    /** @type {Shown} */
    this.shown = {
      nodes: new Uint8Array(),
      edges: new Uint8Array(),
      selected: -1,
      pointed: -1,
      marked: null,
      gaps: new Set(),
    };
    /** @type {Looks} */
    this.looks = { page: "#fff", text: "#000", line: "#888", accent: "#06c", gap: "#c30", fill: () => "#888", font: "sans-serif" }; // prettier-ignore
    /** @type {Map<string, [string, number]>} names as they are drawn, and how wide that is */
    this.widths = new Map();
    /** @type {{scale: number, places: ({x: number, y: number} | null)[]}} */
    this.labels = { scale: -1, places: [] };
    /** @type {number[]} edges of the node that is looked at */
    this.bright = [];
  }

  /**
   * @param {GraphNode[]} nodes  those that matter most come first
   * @param {GraphEdge[]} edges
   */
  show(nodes, edges) {
    const stays =
      nodes.length === this.nodes.length &&
      nodes.every(({ id, x, y }, number) => {
        const before = this.nodes[number];
        return id === before.id && x === before.x && y === before.y;
      });
    this.nodes = nodes;
    this.edges = edges;
    this.near = nodes.map(() => new Set());
    edges.forEach(({ source, target }) => {
      this.near[source].add(target);
      this.near[target].add(source);
    });
    this.index = new PointIndex(nodes);
    this.change({
      nodes: new Uint8Array(nodes.length).fill(1),
      edges: new Uint8Array(edges.length).fill(1),
      selected: -1,
      pointed: -1,
      marked: null,
      gaps: new Set(),
    });
    if (!stays) {
      this.fitAll(false);
    }
  }

  /** @param {Partial<Shown>} shown */
  change(shown) {
    if (shown.nodes || shown.marked !== undefined) {
      this.labels.scale = -1;
    }
    this.shown = { ...this.shown, ...shown };
    this.draw();
  }

  /** @param {Looks} looks */
  paintWith(looks) {
    this.looks = looks;
    this.widths.clear();
    this.labels.scale = -1;
    this.draw();
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  point(x, y) {
    this.onPoint(this.at(x, y));
  }

  unpoint() {
    this.onPoint(-1);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {boolean} coarse
   */
  press(x, y, coarse) {
    this.onSelect(this.at(x, y, coarse ? 12 : 4));
  }

  escape() {
    this.onSelect(-1);
  }

  overview() {
    const seen = this.nodes.filter((_, number) => this.shown.nodes[number]);
    return fit(seen, this.size, 28);
  }

  /**
   * Bring a node and its neighbours into sight, if they are not.
   *
   * @param {number} number
   */
  reveal(number) {
    const { x, y } = this.nodes[number];
    const numbers = [number, ...this.near[number]].filter((each) => this.shown.nodes[each]);
    const circles = numbers.map((each) => this.nodes[each]);
    let wanted = fit(circles, this.size, 70, 1.2);
    if (wanted.scale < 0.35) {
      wanted = { x, y, scale: 0.35 }; // some are far away
    }
    const [px, py] = this.pixel(x, y);
    const { width, height } = this.size;
    const inside = px > 40 && py > 40 && px < width - 40 && py < height - 40;
    const { scale } = this.camera;
    if (!inside || scale < wanted.scale / 1.5 || scale > wanted.scale * 2.5) {
      this.moveTo(wanted, true);
    }
  }

  /**
   * The node at a place of the picture, or -1.
   *
   * @param {number} x  in pixels
   * @param {number} y
   * @param {number} [slack]  pixels that a pointer may be beside it
   */
  at(x, y, slack = 4) {
    const { camera, size, shown } = this;
    const { scale } = camera;
    const [wx, wy] = [
      (x - size.width / 2) / scale + camera.x,
      (y - size.height / 2) / scale + camera.y,
    ];
    /** @param {number} number */
    const reach = (number) =>
      shown.nodes[number] ? (drawnRadius(this.nodes[number].radius, scale) + slack) / scale : -1;
    return this.index.find(wx, wy, (60 + slack) / scale, reach);
  }

  paint() {
    const { context, size, shown } = this;
    if (!size.width) {
      return;
    }
    const ratio = this.canvas.width / size.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, size.width, size.height);
    const { camera } = this;
    const circles = this.nodes.map((node) => ({
      x: (node.x - camera.x) * camera.scale + size.width / 2,
      y: (node.y - camera.y) * camera.scale + size.height / 2,
      radius: drawnRadius(node.radius, camera.scale),
    }));
    const focus = shown.pointed >= 0 ? shown.pointed : shown.selected;
    const lit = this.lit(focus);
    this.paintEdges(circles, lit, focus);
    this.paintNodes(circles, lit);
    this.paintRings(circles);
    this.paintLabels(circles, lit, focus);
  }

  /**
   * The nodes that are not faint.
   *
   * @param {number} focus
   * @returns {Set<number> | null} null for all
   */
  lit(focus) {
    return focus >= 0 ? new Set([focus, ...this.near[focus]]) : this.shown.marked;
  }

  /**
   * @param {import("./geometry.js").Circle} circle
   * @param {number} [beyond]
   */
  inSight({ x, y, radius }, beyond = 0) {
    const far = radius + beyond;
    return x > -far && y > -far && x < this.size.width + far && y < this.size.height + far;
  }

  /**
   * @param {import("./geometry.js").Circle[]} circles
   * @param {Set<number> | null} lit
   * @param {number} focus
   */
  paintEdges(circles, lit, focus) {
    const { context, looks, shown, size } = this;
    const { width, height } = size;
    const steps = Array.from({ length: STEPS }, () => /** @type {number[]} */ ([]));
    /** @type {number[]} */
    const bright = [];
    this.edges.forEach(({ source, target, weight }, number) => {
      if (!shown.edges[number] || !shown.nodes[source] || !shown.nodes[target]) {
        return;
      }
      const [a, b] = [circles[source], circles[target]];
      if (
        (a.x < 0 && b.x < 0) ||
        (a.y < 0 && b.y < 0) ||
        (a.x > width && b.x > width) ||
        (a.y > height && b.y > height)
      ) {
        return;
      }
      if (focus >= 0 && (source === focus || target === focus)) {
        bright.push(number);
      } else if (!(lit && focus < 0 && (!lit.has(source) || !lit.has(target)))) {
        steps[Math.min(Math.floor(weight * STEPS), STEPS - 1)].push(number);
      }
    });
    context.strokeStyle = looks.line;
    context.lineWidth = Math.min(Math.max(this.camera.scale ** 0.5, 0.5), 1.4);
    const fade = lit && focus >= 0 ? 0.25 : 1;
    steps.forEach((numbers, step) => {
      if (numbers.length) {
        context.globalAlpha = (0.16 + (0.5 * step) / STEPS) * fade;
        context.beginPath();
        for (const number of numbers) {
          const { source, target } = this.edges[number];
          context.moveTo(circles[source].x, circles[source].y);
          context.lineTo(circles[target].x, circles[target].y);
        }
        context.stroke();
        if (this.camera.scale >= ARROWS_FROM && fade === 1) {
          this.paintArrows(numbers, circles, looks.line);
        }
      }
    });
    context.globalAlpha = 0.9;
    context.strokeStyle = looks.accent;
    context.lineWidth = 1.5;
    context.beginPath();
    for (const number of bright) {
      const { source, target } = this.edges[number];
      context.moveTo(circles[source].x, circles[source].y);
      context.lineTo(circles[target].x, circles[target].y);
    }
    context.stroke();
    this.paintArrows(bright, circles, looks.accent);
    context.globalAlpha = 1;
    this.bright = bright;
  }

  /**
   * @param {number[]} numbers  of edges
   * @param {import("./geometry.js").Circle[]} circles
   * @param {string} colour
   */
  paintArrows(numbers, circles, colour) {
    const { context } = this;
    context.fillStyle = colour;
    context.beginPath();
    for (const number of numbers) {
      const { source, target } = this.edges[number];
      const line = between(circles[source], circles[target]);
      if (line && Math.hypot(line[2] - line[0], line[3] - line[1]) > 12) {
        const angle = Math.atan2(line[3] - line[1], line[2] - line[0]);
        context.moveTo(line[2], line[3]);
        for (const side of [-0.42, 0.42]) {
          context.lineTo(
            line[2] - 8 * Math.cos(angle + side),
            line[3] - 8 * Math.sin(angle + side),
          );
        }
        context.closePath();
      }
    }
    context.fill();
  }

  /**
   * @param {import("./geometry.js").Circle[]} circles
   * @param {Set<number> | null} lit
   */
  paintNodes(circles, lit) {
    const { context, looks, shown } = this;
    /** @type {Map<string, [number[], number[]]>} */
    const types = new Map();
    // the most important ones lie on top
    for (let number = circles.length - 1; number >= 0; number -= 1) {
      if (shown.nodes[number] && this.inSight(circles[number])) {
        const { type } = this.nodes[number];
        const pair = types.get(type) ?? [[], []];
        pair[lit && !lit.has(number) ? 1 : 0].push(number);
        types.set(type, pair);
      }
    }
    context.strokeStyle = looks.page;
    context.lineWidth = 1;
    for (const bright of [1, 0]) {
      for (const [type, pair] of types) {
        const numbers = pair[bright];
        if (numbers.length) {
          context.fillStyle = looks.fill(type);
          context.globalAlpha = bright ? 0.16 : 1;
          context.beginPath();
          for (const number of numbers) {
            const { x, y, radius } = circles[number];
            outline(context, shapeOf(type), x, y, radius);
          }
          context.fill();
          if (!bright) {
            context.stroke();
          }
        }
      }
    }
    context.globalAlpha = 1;
  }

  /** @param {import("./geometry.js").Circle[]} circles */
  paintRings(circles) {
    const { context, looks, shown } = this;
    /** @type {(number: number, colour: string, away: number, wide: number, dashes: number[]) => void} */
    const ring = (number, colour, away, wide, dashes) => {
      if (number >= 0 && shown.nodes[number] && this.inSight(circles[number], 8)) {
        context.strokeStyle = colour;
        context.lineWidth = wide;
        context.setLineDash(dashes);
        context.beginPath();
        const { x, y, radius } = circles[number];
        context.arc(x, y, radius + away, 0, 2 * Math.PI);
        context.stroke();
      }
    };
    shown.gaps.forEach((number) => ring(number, looks.gap, 3.5, 2, [4, 3]));
    ring(shown.pointed, looks.accent, 2.5, 1.5, []);
    ring(shown.selected, looks.accent, 3.5, 3, []);
    context.setLineDash([]);
  }

  /**
   * A name as it is drawn, and how wide that is.
   *
   * @param {string} name
   * @param {boolean} [whole]
   * @returns {[string, number]}
   */
  measured(name, whole = false) {
    const key = `${whole} ${name}`;
    let known = this.widths.get(key);
    if (!known) {
      const text = shortened(name, whole ? 2 * LONGEST_LABEL : LONGEST_LABEL);
      known = [text, this.context.measureText(text).width];
      this.widths.set(key, known);
    }
    return known;
  }

  /**
   * @param {import("./geometry.js").Circle[]} circles
   * @param {Set<number> | null} lit
   * @param {number} focus
   */
  paintLabels(circles, lit, focus) {
    const { context, looks, shown, camera } = this;
    context.font = `12px ${looks.font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    if (lit) {
      const order = [...lit].filter((number) => shown.nodes[number]);
      order.sort((a, b) => Number(b === focus) - Number(a === focus) || a - b);
      const spots = order.map((number) => ({
        ...circles[number],
        width: this.measured(this.nodes[number].name, number === focus)[1],
      }));
      placeLabels(spots, 1).forEach((place, i) => {
        const number = order[i];
        if (place && this.inSight(circles[number], 100)) {
          this.paintLabel(this.measured(this.nodes[number].name, number === focus)[0], place, 1);
        }
      });
      this.nameEdges(circles, focus);
      return;
    }
    // chosen by scale alone, so that they stay while the picture is moved
    if (this.labels.scale !== camera.scale) {
      const spots = this.nodes.map(({ name, x, y, radius }, number) => {
        const drawn = drawnRadius(radius, camera.scale);
        const named = shown.nodes[number] && drawn >= SMALLEST_LABELLED;
        const width = named ? this.measured(name)[1] : -1;
        return { x: x * camera.scale, y: y * camera.scale, radius: drawn, width };
      });
      const named = spots.flatMap(({ width }, number) => (width < 0 ? [] : [number]));
      const found = placeLabels(
        named.map((number) => spots[number]),
        60,
      );
      /** @type {({x: number, y: number} | null)[]} */
      const places = this.nodes.map(() => null);
      named.forEach((number, i) => {
        const place = found[i];
        places[number] = place && { x: place.x - spots[number].x, y: place.y - spots[number].y };
      });
      this.labels = { scale: camera.scale, places };
    }
    this.labels.places.forEach((place, number) => {
      if (place && this.inSight(circles[number], 100)) {
        const { x, y } = circles[number];
        const at = { x: x + place.x, y: y + place.y };
        this.paintLabel(this.measured(this.nodes[number].name)[0], at, 1);
      }
    });
  }

  /**
   * @param {string} text
   * @param {{x: number, y: number}} place
   * @param {number} opacity
   */
  paintLabel(text, { x, y }, opacity) {
    const { context, looks } = this;
    context.globalAlpha = opacity;
    context.strokeStyle = looks.page;
    context.lineWidth = 3.5;
    context.strokeText(text, x, y);
    context.fillStyle = looks.text;
    context.fillText(text, x, y);
    context.globalAlpha = 1;
  }

  /**
   * Say what the relations of a node are, where that is legible.
   *
   * @param {import("./geometry.js").Circle[]} circles
   * @param {number} focus
   */
  nameEdges(circles, focus) {
    const { bright } = this;
    if (focus < 0 || bright.length > MOST_NAMED_EDGES) {
      return;
    }
    const { context, looks } = this;
    context.font = `10px ${looks.font}`;
    const named = new Set();
    for (const number of bright) {
      const { source, target, name } = this.edges[number];
      const other = source === focus ? target : source;
      if (named.has(other)) {
        continue; // its strongest relation is named
      }
      named.add(other);
      const line = between(circles[source], circles[target]);
      const text = name.replaceAll("_", " ");
      if (line && Math.hypot(line[2] - line[0], line[3] - line[1]) > 6 * text.length + 24) {
        this.paintLabel(text, { x: (line[0] + line[2]) / 2, y: (line[1] + line[3]) / 2 }, 0.8);
      }
    }
  }
}

export { GraphCanvas };
