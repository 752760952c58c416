// Shapes of node types, in addition to colours.

const SHAPES = ["circle", "square", "diamond", "triangle", "hexagon"];
/** @type {Record<string, number>} */
const SHAPE_OF = { document: 1, error: 2, flag: 3, setting: 4, variable: 4, command: 3, file: 1, endpoint: 2, schema: 1 }; // prettier-ignore

/** @param {string} type */
export function shapeOf(type) {
  return SHAPES[Object.hasOwn(SHAPE_OF, type) ? SHAPE_OF[type] : 0];
}

/**
 * Add a node's outline to a path.
 *
 * @param {{moveTo: Function, lineTo: Function, arc: Function, closePath: Function}} path
 * @param {string} shape
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 */
export function outline(path, shape, x, y, radius) {
  if (shape === "circle") {
    path.moveTo(x + radius, y);
    path.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  const [corners, turn, wide] = /** @type {Record<string, [number, number, number]>} */ ({
    square: [4, Math.PI / 4, 1.2],
    diamond: [4, 0, 1.2],
    triangle: [3, -Math.PI / 2, 1.25],
    hexagon: [6, 0, 1.08],
  })[shape];
  for (let corner = 0; corner < corners; corner += 1) {
    const angle = turn + (2 * Math.PI * corner) / corners;
    const [px, py] = [x + radius * wide * Math.cos(angle), y + radius * wide * Math.sin(angle)];
    corner ? path.lineTo(px, py) : path.moveTo(px, py);
  }
  path.closePath();
}
