// Geometry of a graph's picture: the camera's view, the node at the pointer, the labels that fit.
// Nothing here draws.

/**
 * @typedef {{x: number, y: number, scale: number}} Camera  the point of the graph in the centre,
 *   and pixels per unit of the graph
 * @typedef {{width: number, height: number}} Size  of the picture, in pixels
 * @typedef {{x: number, y: number, radius: number}} Circle
 * @typedef {{left: number, top: number, right: number, bottom: number}} Box
 * @typedef {{x: number, y: number, radius: number, width: number}} LabelSpot  a node, in pixels,
 *   with the width of its name; the most important first
 */

const MIN_SCALE = 0.02;
const MAX_SCALE = 8;
const LABEL_HEIGHT = 14;
/** Margin beside and above a label. */
const LABEL_ROOM = [12, 6];
const SIDES = [[0, 1], [0, -1], [1, 0], [-1, 0]]; // prettier-ignore

/** @param {number} scale */
function clampScale(scale) {
  return Math.min(Math.max(scale, MIN_SCALE), MAX_SCALE);
}

/**
 * The camera that shows all circles.
 *
 * @param {Circle[]} circles
 * @param {Size} size
 * @param {number} margin  pixels
 * @param {number} [most]  the largest scale
 * @returns {Camera}
 */
export function fit(circles, size, margin, most = 1.6) {
  if (!circles.length) {
    return { x: 0, y: 0, scale: 1 };
  }
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y, radius } of circles) {
    left = Math.min(left, x - radius);
    right = Math.max(right, x + radius);
    top = Math.min(top, y - radius);
    bottom = Math.max(bottom, y + radius);
  }
  const scale = Math.min(
    Math.max(size.width - 2 * margin, 20) / (right - left || 1),
    Math.max(size.height - 2 * margin, 20) / (bottom - top || 1),
    most,
  );
  return { x: (left + right) / 2, y: (top + bottom) / 2, scale: clampScale(scale) };
}

/**
 * Zoom; one point of the picture stays in place.
 *
 * @param {Camera} camera
 * @param {Size} size
 * @param {number} x  of the point, in pixels
 * @param {number} y
 * @param {number} factor
 * @returns {Camera}
 */
export function zoomAt(camera, size, x, y, factor) {
  const scale = clampScale(camera.scale * factor);
  const change = 1 / camera.scale - 1 / scale;
  return {
    x: camera.x + (x - size.width / 2) * change,
    y: camera.y + (y - size.height / 2) * change,
    scale,
  };
}

/**
 * The drawn radius of a node, which shrinks less than distances, so that it stays visible.
 *
 * @param {number} radius
 * @param {number} scale
 */
export function drawnRadius(radius, scale) {
  return Math.max(radius * Math.min(scale ** 0.55, 1.25), 1.3);
}

/** Positions of a graph's nodes, in its units or in pixels. */
export class Spots {
  /** @param {ArrayLike<Circle>} circles */
  constructor(circles) {
    this.x = Float32Array.from(circles, ({ x }) => x);
    this.y = Float32Array.from(circles, ({ y }) => y);
    this.radius = Float32Array.from(circles, ({ radius }) => radius);
  }

  /**
   * The positions in a camera's view.
   *
   * @param {Camera} camera
   * @param {Size} size
   */
  seen(camera, size) {
    const seen = new Spots([]);
    const { scale } = camera;
    seen.x = this.x.map((x) => (x - camera.x) * scale + size.width / 2);
    seen.y = this.y.map((y) => (y - camera.y) * scale + size.height / 2);
    seen.radius = this.radius.map((radius) => drawnRadius(radius, scale));
    return seen;
  }

  /**
   * @param {number} number
   * @returns {Circle}
   */
  at(number) {
    return { x: this.x[number], y: this.y[number], radius: this.radius[number] };
  }

  /**
   * Whether a node is at least partly in the picture.
   *
   * @param {number} number
   * @param {Size} size
   * @param {number} [beyond]  how far it reaches beyond its circle
   */
  inside(number, { width, height }, beyond = 0) {
    const far = this.radius[number] + beyond;
    const [x, y] = [this.x[number], this.y[number]];
    return x > -far && y > -far && x < width + far && y < height + far;
  }
}

/**
 * The nearest point within reach of a pointer, or -1.
 *
 * @param {{x: number, y: number}[]} points  of the graph
 * @param {number} x
 * @param {number} y
 * @param {(number: number) => number} reach  radius in which each can be pointed at; below 0 for
 *   never
 */
export function nearest(points, x, y, reach) {
  let [best, least] = [-1, 0];
  points.forEach((point, number) => {
    const beyond = Math.hypot(point.x - x, point.y - y) - reach(number);
    if (beyond < least || (beyond === 0 && best < 0)) {
      [best, least] = [number, beyond];
    }
  });
  return best;
}

/**
 * Place labels below, else above, right or left of their nodes. Labels do not overlap each other or
 * more important nodes.
 *
 * @param {LabelSpot[]} spots
 * @param {number} obstacles  number of first nodes that labels must not cover
 * @returns {Int8Array} the side of each, for `labelMiddle`, or -1
 */
export function placeLabels(spots, obstacles) {
  /** @type {Box[]} */
  const taken = spots.slice(0, obstacles).map(({ x, y, radius }) => {
    const half = radius * 0.8; // corners of the box are outside of the circle
    return { left: x - half, top: y - half, right: x + half, bottom: y + half };
  });
  return Int8Array.from(spots, (spot) =>
    SIDES.findIndex((_, side) => {
      const { x, y } = labelMiddle(spot, side);
      const [wide, high] = [spot.width / 2, LABEL_HEIGHT / 2];
      const [left, right, top, bottom] = [x - wide, x + wide, y - high, y + high];
      if (
        taken.some(
          (box) => left < box.right && box.left < right && top < box.bottom && box.top < bottom,
        )
      ) {
        // prettier-ignore
        return false;
      }
      const [beside, above] = LABEL_ROOM; // its own node may be in the room around it
      taken.push({ left: left - beside, right: right + beside, top: top - above, bottom: bottom + above }); // prettier-ignore
      return true;
    }),
  );
}

/**
 * The middle of a label.
 *
 * @param {LabelSpot} spot
 * @param {number} side  of its node: below, above, right, left
 */
export function labelMiddle({ x, y, radius, width }, side) {
  const [right, down] = SIDES[side];
  return {
    x: x + right * (radius + width / 2 + 4),
    y: y + down * (radius + LABEL_HEIGHT / 2 + 1),
  };
}

/**
 * Ends of a line between the edges of two circles; null if they overlap.
 *
 * @param {Circle} from
 * @param {Circle} to
 * @returns {[number, number, number, number] | null}
 */
export function between(from, to) {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  if (length <= from.radius + to.radius) {
    return null;
  }
  const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  return [
    from.x + dx * from.radius,
    from.y + dy * from.radius,
    to.x - dx * to.radius,
    to.y - dy * to.radius,
  ];
}

/**
 * Text cut to a width.
 *
 * @param {string} text
 * @param {number} most  characters
 */
export function shortened(text, most) {
  const letters = [...text.slice(0, 4 * most)];
  return letters.length > most
    ? `${letters
        .slice(0, most - 1)
        .join("")
        .trimEnd()}…`
    : text;
}
