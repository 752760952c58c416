import assert from "node:assert/strict";
import test from "node:test";

import { JudgingRound } from "../../kbkit/panels/static/round.js";

const STATE = { version: 0, counts: [[0, 1]], stored: null, start: 0 };

test("a key before the passages are there judges nothing and says so", () => {
  /** @type {[string, object][]} */
  const sent = [];
  const round = new JudgingRound(["dry kilns"], (event, values) => {
    sent.push([event, values]);
    return true;
  });
  round.update(/** @type {any} */ (STATE));
  assert.match(round.judge(5), /still loading/);
  assert.match(round.skip(), /still loading/);
  assert.deepEqual(sent, [["request", { places: [0] }]]);
  const passage = { id: "a", title: "Kilns", score: null };
  round.addPool(/** @type {any} */ ({ place: 0, version: 0, passages: [passage] }));
  assert.match(round.judge(5), /^5, /);
  assert.equal(sent.at(-1)?.[0], "judge");
});
