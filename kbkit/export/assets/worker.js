// Replaces the worker of Material's search box. A classic script in old syntax, so that browsers
// that cannot run the engine can still start Material's worker. It loads nothing before the first
// search.

(() => {
  const HERE = new URL(".", self.location.href);
  const ROOT = new URL("../../", HERE);
  /** @type {any[]} */
  const waiting = [];
  /** @type {((message: any) => void) | null} */
  let answer = null;
  let started = false;
  /** @type {any} */
  let setup = null;
  let onSetup = () => {};

  /** @param {MessageEvent} event */
  function receive(event) {
    const message = event.data;
    if (message.type === 0) {
      setup = message;
      onSetup();
      self.postMessage({ type: 1 });
    } else if (answer) {
      answer(message);
    } else if (message.type === 2 && !message.data) {
      self.postMessage({ type: 3, data: { items: [] } });
    } else {
      waiting.push(message);
      if (!started) start();
    }
  }

  /** @param {string} path @param {RequestInit} [options] */
  async function load(path, options) {
    const text = await (await got(path, options)).text();
    return JSON.parse(text.slice(text.indexOf("(") + 1, text.lastIndexOf(")")));
  }

  /** @param {string} path */
  async function bytes(path) {
    // names are hashes of the content, so cached files stay valid
    return (await got(path, { cache: "force-cache", priority: "low" })).arrayBuffer();
  }

  /** @param {string} path @param {RequestInit} [options] */
  async function got(path, options) {
    const response = await fetch(new URL(path, ROOT), options);
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return response;
  }

  async function start() {
    started = true;
    /** @type {any} */
    let site;
    try {
      // not cached, since it names the files of the newest build
      site = await load("assets/kbkit/site.js", { cache: "no-cache" });
    } catch (error) {
      started = false;
      for (const message of waiting.splice(0)) fail(message, error);
      return;
    }
    try {
      self.importScripts(new URL(site.engine, HERE).href);
      const run = (/** @type {string} */ path) => self.importScripts(new URL(path, ROOT).href);
      const post = (/** @type {any} */ message) => self.postMessage(message);
      const service = new /** @type {any} */ (self).kbkit.Service(site, { load, run, bytes }, post);
      answer = (message) => service.answer(message);
      for (const message of waiting.splice(0)) answer(message);
    } catch (error) {
      searchKeywords(site, error);
    }
  }

  /**
   * @param {any} message
   * @param {unknown} error
   */
  function fail(message, error) {
    if (message.kbkit) {
      self.postMessage({ kbkit: "error", id: message.id, message: String(error) });
    } else {
      const title = "Search is out of reach";
      const text = "Are you offline? Search again once you are not.";
      const item = { location: "search/", title, text, score: 1, terms: {} };
      self.postMessage({ type: 3, data: { items: [[item]] } });
    }
  }

  /**
   * Fall back to Material's worker, which searches by words.
   *
   * @param {any} site
   * @param {unknown} error
   */
  async function searchKeywords(site, error) {
    /** @param {any} message  queued until Material's worker is ready */
    const keep = (message) => {
      if (!message.kbkit) waiting.push(message);
      else if (message.kbkit !== "warm") fail(message, error);
    };
    waiting.splice(0).forEach(keep);
    self.postMessage({ kbkit: "keywords" });
    answer = keep;
    // the theme sends its setup after it has read an index; a page of results never does
    if (!setup) await new Promise((resolve) => (onSetup = () => resolve(null)));
    const { docs } = await load(site.keywords);
    const material = new URL(site.material, ROOT);
    const run = self.importScripts.bind(self);
    const post = self.postMessage.bind(self);
    self.importScripts = (...urls) => run(...urls.map((url) => new URL(url, material).href));
    /** @param {MessageEvent} event */
    const queue = (event) => {
      if (!event.isTrusted) return; // from `again`
      event.stopImmediatePropagation();
      keep(event.data);
    };
    /** @param {any} message */
    const sent = (message) => {
      post(message.type === 1 ? { kbkit: "ready" } : message);
      if (message.type !== 1) return;
      self.removeEventListener("message", queue);
      waiting.splice(0).forEach(again);
    };
    self.postMessage = sent;
    self.removeEventListener("message", receive);
    self.addEventListener("message", queue);
    run(material.href);
    again({ ...setup, data: { ...setup.data, docs } });
  }

  /** @param {any} data */
  function again(data) {
    self.dispatchEvent(new MessageEvent("message", { data }));
  }

  self.addEventListener("message", receive);
})();
