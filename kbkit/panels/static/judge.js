// Drawing and keys of a round of judging.
import {
  focusIn,
  make,
  makeButton,
  makeLink,
  setText,
  showIn,
} from "../../export/assets/elements.js";
import { View, claimKey, widgetOf } from "./dom.js";
import { makePassage } from "./html.js";
import { JudgingRound } from "./round.js";
import { GRADES } from "./stars.js";

/**
 * @typedef {import("./round.js").Candidate} Candidate
 * @typedef {(round: JudgingRound) => string} Action  returns a status message
 * @typedef {{button: HTMLButtonElement, score: HTMLElement}} Item  an item of the list
 */

const JUDGE_KEYS = [
  ["1–5", "judge"],
  ["← →", "move"],
  ["0 ⌫", "undo"],
  ["s", "skip"],
  ["n p", "next, previous query"],
];

class JudgeView extends View {
  /** @param {import("./dom.js").Widget} widget */
  constructor(widget) {
    super(widget);
    this.round = new JudgingRound(this.model.get("queries"), (event, values) =>
      this.send(event, values),
    );
    this.wasLate = false;
    this.drawnEnd = -1;
    /** @type {Candidate | Candidate[] | null | undefined} the shown passage */
    this.drawn = undefined;
    /** @type {Candidate[] | null} listed passages */
    this.listed = null;
    /** @type {Item[]} */
    this.items = [];
    this.select = make("select", {
      "aria-label": "Query",
      onchange: () => this.act((round) => round.goTo(Number(this.select.value))),
    });
    this.select.append(
      ...this.round.queries.map((query, i) => make("option", { value: i }, query)),
    );
    this.bar = make("progress", { "aria-label": "Judged", max: 1, value: 0 });
    this.progress = make("span");
    this.query = make("bdi");
    this.heading = make("p", { class: "kbkit-judge-query", dir: "auto" }, this.query);
    this.list = make("ol", { class: "kbkit-judge-list", "aria-label": "Passages" });
    this.passage = make("section", { class: "kbkit-judge-passage", tabindex: 0 });
    this.grades = this.gradeButtons();
    this.skip = this.button("Skip, key s", (round) => round.skip(), "Skip");
    const work = { class: "kbkit-judge-main" };
    this.work = make("div", work, this.list, this.passage, this.grading());
    this.end = make("section", { class: "kbkit-judge-end", tabindex: -1, hidden: true });
    this.status = make("div", { class: "kbkit-status", role: "status" });
    this.problem = make("div", { class: "kbkit-problem", role: "alert", hidden: true });
    this.figures = make("div");
    const keys = JUDGE_KEYS.map(([key, what]) =>
      make("span", {}, make("kbd", {}, key), ` ${what}`),
    );
    this.root = make(
      "div",
      { class: "kbkit-judge", role: "group", "aria-label": "Judge passages" },
      this.top(),
      make("div", { class: "kbkit-judge-progress" }, this.bar, this.progress),
      this.heading,
      this.work,
      this.end,
      this.status,
      this.problem,
      make(
        "div",
        { class: "kbkit-judge-foot" },
        make("div", { class: "kbkit-judge-keys" }, keys),
        this.figures,
      ),
    );
    this.el.replaceChildren(this.root);
    this.onKey((event) => this.onKeydown(event));
    const timer = setInterval(() => this.showLate(), 1000);
    this.ended.signal.addEventListener("abort", () => clearInterval(timer));
    this.drawOn("state", () => this.drawState());
    this.drawOn("pool", () => this.drawPool());
  }

  top() {
    /** @type {(label: string, sign: string, by: number) => HTMLElement} */
    const button = (label, sign, by) =>
      makeButton(sign, () => this.act((round) => round.stepQuery(by)), {
        title: label,
        "aria-label": label,
      });
    return make(
      "div",
      { class: "kbkit-judge-top kbkit-buttons" },
      button("Previous query, key p", "‹", -1),
      this.select,
      button("Next query, key n", "›", 1),
    );
  }

  /**
   * @param {string} title
   * @param {Action} action
   * @param {...(string | Node)} text
   */
  button(title, action, ...text) {
    return makeButton(text, () => this.act(action), { title });
  }

  gradeButtons() {
    return GRADES.map((meaning, i) =>
      this.button(
        `${meaning}, key ${i + 1}`,
        (round) => round.judge(i + 1),
        make("kbd", {}, i + 1),
        make("span", {}, meaning),
      ),
    );
  }

  grading() {
    const back = this.button("Key 0 or Backspace", (round) => round.undo(), "Undo");
    return make(
      "div",
      { class: "kbkit-judge-grading kbkit-buttons" },
      make(
        "div",
        { class: "kbkit-judge-grades", role: "group", "aria-label": "How well does it answer?" },
        this.grades,
      ),
      this.skip,
      back,
    );
  }

  drawState() {
    const state = this.model.get("state");
    this.round.update(state);
    this.problem.hidden = state.problem === "";
    setText(this.problem, state.problem);
    this.draw();
  }

  drawPool() {
    this.round.addPool(this.model.get("pool"));
    this.draw();
  }

  /**
   * Run an action, and show its result and message.
   *
   * @param {Action} action
   */
  act(action) {
    const status = action(this.round);
    this.draw();
    this.status.textContent = status;
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    if (!claimKey(event, this.root)) {
      return;
    }
    const path = event.composedPath();
    const action = path[0] === this.select ? null : this.action(event, path.includes(this.list));
    if (action) {
      event.preventDefault();
      this.act(action);
    }
  }

  /**
   * @param {KeyboardEvent} event
   * @param {boolean} inList
   * @returns {Action | null | undefined}
   */
  action(event, inList) {
    const key = event.key.toLowerCase();
    if (/^[1-5]$/.test(key)) {
      // key repeat must not judge again
      return event.repeat ? null : (round) => round.judge(Number(key));
    }
    /** @type {Record<string, number>} */
    const by = { arrowright: 1, arrowleft: -1, ...(inList ? { arrowdown: 1, arrowup: -1 } : {}) };
    if (key in by) {
      return (round) => round.stepPassage(by[key]);
    }
    /** @type {Record<string, Action>} */
    const actions = {
      0: (round) => round.undo(),
      backspace: (round) => round.undo(),
      s: (round) => round.skip(),
      n: (round) => round.stepQuery(1),
      p: (round) => round.stepQuery(-1),
    };
    return actions[key];
  }

  showLate() {
    const { late } = this.round;
    if (late) {
      this.status.textContent = `${late} not saved yet: the kernel is busy or has stopped.`;
    } else if (this.wasLate) {
      this.status.textContent = "All saved.";
    }
    this.wasLate = late > 0;
  }

  // Drawing: elements stay in place, to keep focus and scroll position

  get focused() {
    return focusIn(this.root);
  }

  draw() {
    const focused = this.root.contains(this.focused);
    const ended = this.round.place !== null && this.round.place < 0;
    this.drawProgress();
    this.drawFigures();
    if (ended) {
      this.drawEnd();
    } else {
      const { place, queries } = this.round;
      this.select.value = String(place ?? 0);
      setText(this.query, place === null ? "Finding your position…" : queries[place]);
      this.drawList();
      this.drawPassage();
    }
    if (ended === this.end.hidden) {
      this.end.hidden = !ended;
      this.work.hidden = ended;
      this.heading.hidden = ended;
      if (focused) {
        (ended ? this.end : this.passage).focus();
      }
    }
  }

  drawProgress() {
    const { queries } = this.round;
    const counts = queries.map((_, place) => this.round.count(place));
    const judged = counts.reduce((sum, [done]) => sum + done, 0);
    const pooled = counts.reduce((sum, [, size]) => sum + (size ?? 0), 0);
    const suffix = counts.every(([, size]) => size !== null) ? "" : " or more";
    const done = counts.map(([count, size]) => size !== null && count === size);
    const noun = queries.length === 1 ? "query" : "queries";
    this.bar.max = Math.max(1, pooled);
    this.bar.value = Math.min(judged, pooled);
    setText(
      this.progress,
      `${judged} of ${pooled}${suffix} judged · ` +
        `${done.filter(Boolean).length} of ${queries.length} ${noun} done`,
    );
    [...this.select.options].forEach((option, i) =>
      setText(option, `${done[i] ? "✓ " : ""}${i + 1}. ${queries[i]}`),
    );
  }

  drawFigures() {
    const { interim, agreement, rater } = this.model.get("state");
    const figures = [];
    if (interim) {
      const noun = interim.queries === 1 ? "query" : "queries";
      figures.push(
        `Search now: nDCG@10 ${interim.ndcg.toFixed(2)} on ${interim.queries} ${noun}, ` +
          `${Math.round(interim.judged * 100)} % of the first ten judged`,
      );
    }
    if (agreement && agreement.alpha !== null) {
      const { alpha, passages } = agreement;
      figures.push(`Agreement: alpha ${alpha.toFixed(2)} on ${passages} passages`);
    }
    setText(this.figures, [...figures, `as ${rater}`].join(" · "));
  }

  drawList() {
    const { pool } = this.round;
    if (this.listed !== pool) {
      const focused = this.list.contains(this.focused);
      this.listed = pool;
      this.items = (pool ?? []).map((candidate, i) => this.item(candidate, i));
      this.list.replaceChildren(...this.items.map(({ button }) => make("li", {}, button)));
      if (focused) {
        this.passage.focus();
      }
    }
    pool?.forEach((candidate, i) => {
      const { button, score } = this.items[i];
      const judged = candidate.score !== null;
      const isCurrent = i === this.round.at;
      const skipped = !judged && this.round.isSkipped(candidate);
      setText(score, judged ? String(candidate.score) : skipped ? "skipped" : "");
      score.classList.toggle("kbkit-judged", judged);
      button.tabIndex = isCurrent ? 0 : -1;
      button.setAttribute("aria-current", String(isCurrent));
      if (isCurrent) {
        showIn(this.list, button);
      }
    });
    if (this.list.contains(this.focused)) {
      this.items[this.round.at]?.button.focus({ preventScroll: true });
    }
  }

  /**
   * @param {Candidate} candidate
   * @param {number} i
   * @returns {Item}
   */
  item(candidate, i) {
    const score = make("span", { class: "kbkit-judge-score" });
    const number = make("span", { class: "kbkit-judge-number" }, i + 1);
    const button = makeButton([number, make("bdi", {}, candidate.title), score], () =>
      this.act((round) => round.stepPassage(i - round.at)),
    );
    return { button, score };
  }

  drawPassage() {
    const { at, candidate, pool } = this.round;
    this.grades.forEach((button, i) => {
      button.setAttribute("aria-pressed", String(candidate?.score === i + 1));
      button.disabled = !candidate;
    });
    this.skip.disabled = !candidate;
    this.passage.setAttribute("aria-busy", String(!pool));
    const content = candidate ?? pool;
    if (this.drawn === content) {
      return;
    }
    const before = this.drawn && "id" in this.drawn ? this.drawn.id : null;
    const isSame = candidate !== null && before === candidate.id;
    const top = isSame ? this.passage.scrollTop : 0;
    this.drawn = content;
    const label = candidate && pool ? `Passage ${at + 1} of ${pool.length}` : "Passage";
    this.passage.setAttribute("aria-label", label);
    if (candidate) {
      const { html, link, path, place, title } = candidate;
      this.passage.replaceChildren(
        make("h4", {}, makeLink(link, {}, make("bdi", {}, title))),
        make("div", { class: "kbkit-judge-path" }, make("bdi", {}, path || place)),
        makePassage(html),
      );
    } else {
      const text = pool ? "No passage was found for this query." : "Collecting passages…";
      this.passage.replaceChildren(make("p", { class: "kbkit-judge-path" }, text));
    }
    this.passage.scrollTop = top;
  }

  drawEnd() {
    const { skips } = this.round;
    if (this.drawnEnd === skips) {
      return; // to keep the focus of its buttons
    }
    this.drawnEnd = skips;
    /** @type {(text: string, action: Action) => HTMLElement} */
    const button = (text, action) => makeButton(text, () => this.act(action));
    this.end.replaceChildren(
      make("h4", {}, skips ? `All judged, ${skips} skipped` : "All judged"),
      make("p", {}, "Ratings are stored in the knowledge base. They measure and tune its search:"),
      make("pre", { tabindex: 0 }, "kb.feedback.evaluate().summary()\nkb.feedback.tune()"),
      make(
        "div",
        { class: "kbkit-buttons" },
        skips > 0 && button("Judge the skipped ones", (round) => round.unskip()),
        button("Review them again", (round) => round.goTo(0)),
      ),
    );
  }
}

export const widget = widgetOf(JudgeView);
