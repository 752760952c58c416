// The page that searches all knowledge bases of the site, with filters. The address has the query
// and the filters, so that a search can be sent to others.

(() => {
  const form = /** @type {HTMLFormElement} */ (document.getElementById("kb-search"));
  const results = /** @type {HTMLElement} */ (document.getElementById("kb-results"));
  const status = /** @type {HTMLElement} */ (document.getElementById("kb-status"));
  const more = /** @type {HTMLButtonElement} */ (document.getElementById("kb-more"));
  const config = JSON.parse(document.getElementById("__config")?.textContent ?? "{}");
  const root = new URL(`${config.base}/`, location.href);
  const query = /** @type {HTMLInputElement} */ (form.elements.namedItem("query"));
  const STEP = 10;
  const MOST = 50;
  const WAIT = 180; // milliseconds after a key
  const DAY = 86_400_000;

  /** @type {Worker | null} */
  let worker = null;
  let asked = 0;
  let limit = STEP;
  let timer = 0;

  /** What stands in the form. */
  function values() {
    const all = [...new FormData(form)].map(([name, value]) => [name, String(value).trim()]);
    return new URLSearchParams(all.filter(([, value]) => value));
  }

  /** @param {URLSearchParams} given */
  function options(given) {
    const fresh = Number(given.get("fresh"));
    return {
      kbs: given.getAll("kb"),
      limit,
      filters: {
        kinds: given.getAll("type"),
        tags: given.getAll("tag"),
        rating: Number(given.get("rating")),
        since: fresh ? Math.floor(Date.now() / DAY) - fresh : 0,
        current: given.get("state") === "current",
      },
    };
  }

  /** @param {string} text */
  function say(text) {
    status.textContent = text;
  }

  /** @param {any} message */
  function send(message) {
    if (!worker) {
      worker = new Worker(new URL(config.search, location.href));
      worker.addEventListener("message", ({ data }) => receive(data));
      worker.addEventListener("error", () => say("Search could not be started in this browser."));
    }
    worker.postMessage(message);
  }

  function search() {
    const given = values();
    const address = new URL(location.href);
    address.search = String(given);
    history.replaceState(null, "", address);
    const text = given.get("query") ?? "";
    asked += 1;
    if (!text) {
      results.replaceChildren();
      more.hidden = true;
      say("");
      return;
    }
    results.setAttribute("aria-busy", "true");
    send({ kbkit: "search", id: asked, query: text, options: options(given) });
  }

  /** @param {any} message */
  function receive(message) {
    if (message.id !== asked) return;
    results.removeAttribute("aria-busy");
    if (message.kbkit === "error") {
      results.replaceChildren();
      more.hidden = true;
      say("The search index could not be read. Are you offline? Reload the page and try again.");
      return;
    }
    const { hits } = message;
    results.replaceChildren(...hits.map(card));
    more.hidden = hits.length < limit || limit >= MOST;
    if (!hits.length) say("Nothing was found. Try other words, or fewer filters.");
    else say(hits.length === 1 ? "1 passage" : `${hits.length} passages, best first`);
  }

  /**
   * @param {string} name
   * @param {string} style
   * @param {(Node | string)[]} parts
   */
  function element(name, style, parts) {
    const made = document.createElement(name);
    if (style) made.className = style;
    made.append(...parts);
    return made;
  }

  /** @param {string[]} parts */
  function marked(parts) {
    return parts.map((part, i) => (i % 2 ? element("mark", "", [part]) : part));
  }

  /** @param {any} hit */
  function card(hit) {
    const link = /** @type {HTMLAnchorElement} */ (element("a", "", marked(hit.titleParts)));
    link.href = new URL(hit.url, root).href;
    const parts = [element("h2", "", [link])];
    if (hit.heading) parts.push(element("p", "kb-path", marked(hit.headingParts)));
    parts.push(element("p", "kb-snippet", marked(hit.snippet)));
    const about = [hit.kbTitle];
    if (hit.kind !== "other") about.push(hit.kind.replaceAll("_", " "));
    if (hit.day) about.push(`fetched ${new Date(hit.day * DAY).toISOString().slice(0, 10)}`);
    if (hit.stale) about.push("may be out of date");
    if (hit.rating) about.push(`rated ${hit.rating.toFixed(1)} of 5`);
    if (hit.tags.length) about.push(hit.tags.join(", "));
    parts.push(element("p", "kb-about", [about.join(" · ")]));
    return element("li", "kb-card", parts);
  }

  function changed() {
    limit = STEP;
    search();
  }

  /** Moves between the results. @param {KeyboardEvent} event */
  function move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops = [query, ...results.querySelectorAll("a")];
    const at = stops.indexOf(/** @type {any} */ (document.activeElement));
    if (!step || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    stops[Math.min(Math.max(at + step, 0), stops.length - 1)].focus();
  }

  /** Puts what the address says into the form. */
  function restore() {
    const given = new URLSearchParams(location.search);
    for (const field of /** @type {any} */ (form.elements)) {
      if (!field.name) continue;
      if (field.type === "checkbox") field.checked = given.getAll(field.name).includes(field.value);
      else field.value = given.get(field.name) ?? "";
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    changed();
  });
  query.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(changed, WAIT);
  });
  form.addEventListener("change", (event) => event.target !== query && changed());
  query.addEventListener("focus", () => send({ kbkit: "warm" }), { once: true });
  document.getElementById("kb-page")?.addEventListener("keydown", move);
  more.addEventListener("click", () => {
    limit = Math.min(limit + STEP, MOST);
    search();
  });
  restore();
  if (query.value) search();
})();
