// The page that searches all knowledge bases of the site, with filters. The address has the query
// and the filters, so that a search can be shared.

import { make, makeButton } from "./elements.js";
import { SearchClient } from "./searchclient.js";

const form = /** @type {HTMLFormElement} */ (document.getElementById("kb-search"));
const results = /** @type {HTMLElement} */ (document.getElementById("kb-results"));
const status = /** @type {HTMLElement} */ (document.getElementById("kb-status"));
const more = /** @type {HTMLButtonElement} */ (document.getElementById("kb-more"));
const drop = /** @type {HTMLButtonElement} */ (document.getElementById("kb-drop"));
const chosen = /** @type {HTMLElement} */ (document.getElementById("kb-chosen"));
const config = JSON.parse(document.getElementById("__config")?.textContent ?? "{}");
const root = new URL(`${config.base}/`, location.href);
const query = /** @type {HTMLInputElement} */ (form.elements.namedItem("query"));
const STEP = 10;
const MAX_HITS = 50;
const WAIT = 180; // milliseconds after a key
const DAY = 86_400_000;

/** Labels of the chips of names. @type {Record<string, string>} */
const SAID = { subject: "topic", entity: "mentions" };

const client = new SearchClient(config.search);
let asked = 0;
let suggested = 0;
let limit = STEP;
let timer = 0;

/** The values of the form. */
function values() {
  const pairs = [...new FormData(form)].map(([name, value]) => [name, String(value).trim()]);
  return new URLSearchParams(pairs.filter(([, value]) => value));
}

/** @param {URLSearchParams} params */
function options(params) {
  const maxAge = Number(params.get("fresh"));
  return {
    kbs: params.getAll("kb"),
    limit,
    filters: {
      kinds: params.getAll("type"),
      tags: params.getAll("tag"),
      rating: Number(params.get("rating")),
      since: maxAge ? Math.floor(Date.now() / DAY) - maxAge : 0,
      current: params.get("state") === "current",
      frames: params.getAll("frame"),
      subjects: params.getAll("subject"),
      entities: params.getAll("entity"),
    },
  };
}

/** @param {string} text */
function say(text) {
  status.textContent = text;
}

async function search() {
  const params = values();
  const address = new URL(location.href);
  address.search = String(params);
  history.replaceState(null, "", address);
  const text = params.get("query") ?? "";
  const number = (asked += 1);
  drop.hidden = true;
  if (!text) {
    results.replaceChildren();
    more.hidden = true;
    say("");
    return;
  }
  results.setAttribute("aria-busy", "true");
  const answer = await client.ask({ kbkit: "search", query: text, options: options(params) });
  if (number === asked) show(answer?.hits);
}

/** @param {any[] | undefined} hits */
function show(hits) {
  results.removeAttribute("aria-busy");
  if (!hits) {
    results.replaceChildren();
    more.hidden = true;
    say("The search index could not be read. Are you offline? Reload the page and try again.");
    return;
  }
  /** @type {Map<string, any[]>} */
  const pages = new Map();
  for (const hit of hits) pages.set(hit.page, [...(pages.get(hit.page) ?? []), hit]);
  results.replaceChildren(...[...pages.values()].map(card));
  more.hidden = hits.length < limit || limit >= MAX_HITS;
  const filters = conditions();
  drop.hidden = !filters.length || hits.length > 0;
  if (!drop.hidden) say(`Nothing was found with the filters: ${filters.join(", ")}.`);
  else if (!hits.length) say("Nothing was found. Try other words.");
  else if (hits.every((hit) => hit.weak))
    say("Nothing here answers this well. These are the nearest pages.");
  else say(pages.size === 1 ? "1 page" : `${pages.size} pages, best first`);
}

/** @param {string[]} parts */
function marked(parts) {
  return parts.map((part, i) => (i % 2 ? make("mark", {}, part) : part));
}

/** A page with its found passages, best first. @param {any[]} hits */
function card(hits) {
  const [best] = hits;
  const kb = form.elements.namedItem("kb") && best.kbTitle;
  const trail = [kb, best.section].filter(Boolean).join(" › ");
  const hasTypes = form.elements.namedItem("type") && best.kind !== "other";
  const about = [
    hasTypes && best.kind.replaceAll("_", " "),
    best.stale && "may be out of date",
    best.rating && `rated ${best.rating.toFixed(1)} of 5`,
    best.tags.join(", "),
  ];
  const facts = about.filter(Boolean).join(" · ");
  return make(
    "li",
    { class: "kb-card" },
    make("h2", {}, linked(best, best.titleParts)),
    trail && make("p", { class: "kb-path" }, trail),
    hits.flatMap((hit) => [
      hit.heading && make("h3", {}, linked(hit, hit.headingParts)),
      make("p", { class: "kb-snippet" }, marked(hit.snippet)),
    ]),
    facts && make("p", { class: "kb-about" }, facts),
  );
}

/**
 * @param {any} hit
 * @param {string[]} parts
 */
function linked(hit, parts) {
  const link = make("a", {}, marked(parts));
  link.href = new URL(hit.url, root).href;
  return link;
}

/**
 * Adds a condition as a chip that removes it.
 *
 * @param {string} name
 * @param {string} value
 */
function choose(name, value) {
  if (!value || new FormData(form).getAll(name).includes(value)) return;
  const text = `${SAID[name]} ${value}`;
  const remove = () => {
    chip.remove();
    changed();
    query.focus();
  };
  const field = make("input", { type: "hidden", name, value });
  const chip = makeButton([`${text} ✕`, field], remove, {
    class: "kb-chip",
    "aria-label": `Remove the filter: ${text}`,
    "data-said": text,
  });
  chosen.append(chip);
}

/** Adds the text of a field for names as a condition. @param {HTMLInputElement} field */
function take(field) {
  choose(String(field.dataset.adds), field.value.trim());
  field.value = "";
}

/** Offers names to choose from. @param {{name: string, kind: string, count: number}[]} subjects */
function suggest(subjects) {
  for (const field of fields()) {
    const entities = field.dataset.adds === "entity";
    const counts = new Map();
    for (const { name, kind, count } of subjects) {
      if ((!entities || kind === "entity") && !counts.has(name)) counts.set(name, count);
    }
    const entries = [...counts].map(([value, count]) =>
      make("option", { value }, `${count.toLocaleString("en")} passage${count === 1 ? "" : "s"}`),
    );
    field.list?.replaceChildren(...entries);
  }
}

/** The fields for names. */
function fields() {
  return /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[data-adds]"));
}

/** The filters that are set. */
function conditions() {
  const labels = [...chosen.querySelectorAll("[data-said]")].map((chip) =>
    String(/** @type {HTMLElement} */ (chip).dataset.said),
  );
  for (const field of /** @type {any} */ (form.elements)) {
    if (field.type === "checkbox" && field.checked) labels.push(field.labels[0].textContent);
    if (field.type === "select-one" && field.value) {
      const label = field.labels[0].firstChild.textContent.toLowerCase();
      labels.push(`${label} ${field.selectedOptions[0].text.replace(/ \([\d,]+\)$/, "")}`);
    }
  }
  return labels;
}

function changed() {
  limit = STEP;
  search();
}

/** Moves between the results. @param {KeyboardEvent} event */
function move(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = /** @type {NodeListOf<HTMLElement>} */ (results.querySelectorAll("a"));
  const stops = [query, ...links];
  const at = stops.indexOf(/** @type {any} */ (document.activeElement));
  if (!step || at < 0) return;
  event.preventDefault();
  event.stopPropagation();
  stops[Math.min(Math.max(at + step, 0), stops.length - 1)].focus();
}

/** Fills the form from the address. */
function restore() {
  const params = new URLSearchParams(location.search);
  for (const name of Object.keys(SAID)) {
    for (const value of params.getAll(name)) choose(name, value);
  }
  for (const field of /** @type {any} */ (form.elements)) {
    if (!field.name || field.type === "hidden") continue;
    if (field.type === "checkbox") field.checked = params.getAll(field.name).includes(field.value);
    else field.value = params.get(field.name) ?? "";
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  fields().forEach(take);
  changed();
});
query.addEventListener("input", () => {
  clearTimeout(timer);
  timer = window.setTimeout(changed, WAIT);
});
form.addEventListener("change", ({ target }) => {
  if (target === query) return;
  if (target instanceof HTMLInputElement && target.dataset.adds) take(target);
  changed();
});
for (const field of fields()) {
  const ask = async () => {
    const number = (suggested += 1);
    const kbs = new FormData(form).getAll("kb").filter(Boolean);
    const typed = { kbkit: "subjects", query: field.value.trim(), options: { kbs } };
    const answer = await client.ask(typed);
    if (answer && number === suggested) suggest(answer.subjects);
  };
  field.addEventListener("focus", ask);
  field.addEventListener("input", ask);
}
drop.addEventListener("click", () => {
  chosen.replaceChildren();
  for (const field of /** @type {any} */ (form.elements)) {
    if (field === query) continue;
    if (field.type === "checkbox") field.checked = false;
    else field.value = "";
  }
  changed();
  query.focus();
});
query.addEventListener("focus", () => client.send({ kbkit: "warm" }), { once: true });
document.getElementById("kb-page")?.addEventListener("keydown", move);
more.addEventListener("click", () => {
  limit = Math.min(limit + STEP, MAX_HITS);
  search();
});
restore();
if (query.value) search();
