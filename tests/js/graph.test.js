import assert from "node:assert/strict";
import test from "node:test";

import { placeAfter } from "../../kbkit/export/assets/elements.js";
import {
  Spots,
  between,
  drawnRadius,
  fit,
  labelMiddle,
  nearest,
  placeLabels,
  shortened,
  zoomAt,
} from "../../kbkit/export/assets/geometry.js";
import { outline } from "../../kbkit/export/assets/marks.js";

const SIZE = { width: 800, height: 500 };

/** Where a camera sees a point. @type {(camera: any, x: number, y: number) => [number, number]} */
const seen = (camera, x, y) => [
  (x - camera.x) * camera.scale + SIZE.width / 2,
  (y - camera.y) * camera.scale + SIZE.height / 2,
];

test("all is in sight, however much or little it is", () => {
  const circles = [
    { x: -900, y: 40, radius: 10 },
    { x: 1500, y: 700, radius: 18 },
  ];
  const camera = fit(circles, SIZE, 20);
  for (const { x, y } of circles) {
    const [px, py] = seen(camera, x, y);
    assert.ok(px >= 20 && px <= SIZE.width - 20 && py >= 20 && py <= SIZE.height - 20);
  }
  assert.deepEqual(fit([], SIZE, 20), { x: 0, y: 0, scale: 1 });
  assert.equal(fit([{ x: 5, y: 6, radius: 4 }], SIZE, 20).scale, 1.6);
});

test("zooming leaves the point under the pointer where it is, within limits", () => {
  const camera = { x: 30, y: -12, scale: 0.7 };
  const near = zoomAt(camera, SIZE, 200, 90, 2.5);
  const point = [(200 - 400) / 0.7 + 30, (90 - 250) / 0.7 - 12];
  const [px, py] = seen(near, point[0], point[1]);
  assert.ok(Math.abs(px - 200) < 1e-9 && Math.abs(py - 90) < 1e-9);
  assert.equal(zoomAt(camera, SIZE, 0, 0, 1e9).scale, 8);
  assert.equal(zoomAt(camera, SIZE, 0, 0, 1e-9).scale, 0.02);
});

test("a pointer is at the nearest node that reaches it, as a search of all says too", () => {
  const points = Array.from({ length: 400 }, (_, i) => ({
    x: ((i * 7919) % 1000) - 500,
    y: ((i * 104_729) % 1000) - 500,
  }));
  const reach = (/** @type {number} */ number) => (number % 5 ? 4 + (number % 7) * 3 : -1);
  let hits = 0;
  for (let x = -520; x <= 520; x += 13) {
    for (let y = -520; y <= 520; y += 17) {
      const away = points.map((p, i) => Math.hypot(p.x - x, p.y - y) - reach(i));
      const least = Math.min(...away.map((each, i) => (reach(i) < 0 ? Infinity : each)));
      const found = nearest(points, x, y, reach);
      assert.equal(found >= 0, least <= 0);
      if (found >= 0) {
        hits += 1;
        assert.equal(away[found], least);
      }
    }
  }
  assert.ok(hits > 100);
  assert.equal(
    nearest([], 0, 0, () => 5),
    -1,
  );
});

test("spots are where a camera sees them, and in sight as far as they reach", () => {
  const spots = new Spots([
    { x: 10, y: -4, radius: 8 },
    { x: 500, y: 0, radius: 4 },
  ]);
  const camera = { x: 2, y: 3, scale: 0.5 };
  const pixels = spots.seen(camera, SIZE);
  assert.deepEqual([pixels.at(0).x, pixels.at(0).y], seen(camera, 10, -4));
  assert.ok(Math.abs(pixels.at(0).radius - drawnRadius(8, 0.5)) < 1e-5);
  assert.ok(pixels.inside(0, SIZE) && pixels.inside(1, SIZE));
  const near = spots.seen({ x: 10, y: -4, scale: 8 }, SIZE);
  assert.ok(near.inside(0, SIZE) && !near.inside(1, SIZE) && near.inside(1, SIZE, 4000));
});

test("labels do not collide, and those that matter most have room", () => {
  const spots = Array.from({ length: 300 }, (_, i) => ({
    x: (i * 37) % 600,
    y: (i * 61) % 400,
    radius: 12 - i / 40,
    width: 40 + (i % 5) * 12,
  }));
  const sides = placeLabels(spots, 40);
  assert.ok(sides[0] >= 0);
  const boxes = spots.flatMap((spot, i) =>
    sides[i] < 0 ? [] : [{ ...labelMiddle(spot, sides[i]), half: spot.width / 2, number: i }],
  );
  assert.ok(boxes.length > 20 && boxes.length < 300);
  boxes.forEach((a, i) =>
    boxes.slice(i + 1).forEach((b) => {
      const apart = Math.abs(a.x - b.x) >= a.half + b.half || Math.abs(a.y - b.y) >= 14;
      assert.ok(apart, `${a.number} lies on ${b.number}`);
    }),
  );
  for (const { x, y, half, number } of boxes) {
    spots.slice(0, 40).forEach((spot, i) => {
      const covered = i !== number && Math.abs(spot.x - x) < half && Math.abs(spot.y - y) < 7;
      assert.ok(!covered, `the label of ${number} covers ${i}`);
    });
  }
  assert.equal(placeLabels([], 10).length, 0);
});

test("lines touch the circles that they are between", () => {
  assert.deepEqual(between({ x: 0, y: 0, radius: 3 }, { x: 10, y: 0, radius: 2 }), [3, 0, 8, 0]);
  assert.equal(between({ x: 0, y: 0, radius: 6 }, { x: 10, y: 0, radius: 5 }), null);
  assert.equal(between({ x: 1, y: 1, radius: 0 }, { x: 1, y: 1, radius: 0 }), null);
});

test("nodes shrink less than distances do, and show from afar", () => {
  assert.equal(drawnRadius(10, 1), 10);
  assert.ok(drawnRadius(10, 0.1) > 2);
  assert.ok(drawnRadius(1, 0.02) > 1);
  assert.ok(drawnRadius(18, 8) < 30);
});

test("names are cut between letters", () => {
  assert.equal(shortened("short", 10), "short");
  assert.equal(shortened("𝒜".repeat(12), 10), `${"𝒜".repeat(9)}…`);
  assert.equal([...shortened("x".repeat(10_000), 36)].length, 36);
});

test("every type has a shape, also one that a person made up", () => {
  for (const type of ["symbol", "error", "document", "flag", "constructor", "my own", ""]) {
    const points = /** @type {number[][]} */ ([]);
    const note = (/** @type {number} */ x, /** @type {number} */ y) => points.push([x, y]);
    outline({ moveTo: note, lineTo: note, arc: () => {}, closePath: () => {} }, type, 0, 0, 10); // prettier-ignore
    assert.ok(points.length > 0);
    assert.ok(points.every(([x, y]) => Math.hypot(x, y) < 13));
  }
});

test("keys move within a list", () => {
  const keys = ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "Enter", "toString"];
  const after = (/** @type {number} */ at, /** @type {number} */ size) =>
    keys.map((key) => placeAfter(key, at, size));
  assert.deepEqual(after(4, 8), [5, 3, 7, 0, 0, 7, null, null]);
  assert.deepEqual(after(7, 8), [7, 6, 7, 0, 0, 7, null, null]);
  assert.deepEqual(after(0, 0), [0, 0, 0, 0, 0, 0, null, null]);
});
