// Runs in every page before the theme, in syntax for old browsers. Tells the search worker when a
// reader enters the search box, so that it loads its data while they type. Without a server
// (file://), workers cannot start, so the search runs in the page. Also loads the script that marks
// a passage, if the address has one.

(() => {
  const script = /** @type {HTMLScriptElement} */ (document.currentScript);
  const HERE = new URL(".", script.src);
  const ROOT = new URL("../../", HERE);
  const Native = window.Worker;

  /** @param {string | URL} url */
  const isOurs = (url) => new URL(url, location.href).href.startsWith(HERE.href);

  /**
   * The model that this browser loaded before and probably has in its cache.
   *
   * @param {string} [loaded]  a newly loaded model, to remember
   */
  function known(loaded) {
    try {
      if (loaded) localStorage.setItem("kbkit-model", loaded);
      return localStorage.getItem("kbkit-model");
    } catch {
      return null; // storage is blocked
    }
  }

  /** @param {EventTarget & {postMessage(message: any): void}} worker */
  function watch(worker) {
    const post = worker.postMessage.bind(worker);
    worker.postMessage = (/** @type {any} */ message) =>
      post(message.kbkit === "warm" ? { ...message, model: known() } : message);
    document.addEventListener("focusin", ({ target }) => {
      if (target instanceof Element && target.matches("[data-md-component=search-query]")) {
        worker.postMessage({ kbkit: "warm" });
      }
    });
    worker.addEventListener("message", (event) => {
      const { kbkit, model } = /** @type {MessageEvent} */ (event).data;
      if (kbkit === "keywords") note();
      if (kbkit === "model") known(model);
    });
  }

  /** Shows that search uses only words. */
  function note() {
    const list = document.querySelector("[data-md-component=search-result]");
    if (!list || document.querySelector(".kb-note")) return;
    const text = document.createElement("p");
    text.className = "kb-note";
    text.style.cssText = "font-size:.64rem;margin:0;padding:.4rem .8rem";
    text.textContent = "Keyword search only: this browser cannot run the search by meaning.";
    list.before(text);
  }

  /** Replaces a worker in a page without a server. */
  class InPage extends EventTarget {
    constructor() {
      super();
      /** @type {Promise<any> | null} */
      this.service = null;
    }

    /** @param {any} message */
    postMessage(message) {
      const type = message.type;
      if (type === 0) this.post({ type: 1 });
      else if (type === 2 && !message.data) this.post({ type: 3, data: { items: [] } });
      else this.answer(message);
    }

    terminate() {}

    /** @param {any} message */
    async answer(message) {
      if (!this.service) this.service = this.start();
      try {
        (await this.service).answer(message);
      } catch (error) {
        this.service = null;
        if (message.kbkit) this.post({ kbkit: "error", id: message.id, message: String(error) });
        else this.post({ type: 3, data: { items: [] } });
      }
    }

    async start() {
      const site = await load("assets/kbkit/site.js");
      await run(`assets/kbkit/${site.engine}`);
      const { kbkit } = /** @type {any} */ (window);
      return new kbkit.Service(site, { load, run }, (/** @type {any} */ data) => this.post(data));
    }

    /** @param {any} data */
    post(data) {
      setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
    }
  }

  /** @type {Map<string | undefined, any>} */
  const loadedShards = new Map();

  /** @param {string} path */
  function run(path) {
    const element = document.createElement("script");
    element.src = new URL(path, ROOT).href;
    return new Promise((resolve, reject) => {
      element.addEventListener("load", () => resolve(element.src));
      element.addEventListener("error", () => reject(new Error(`${path}: cannot be read`)));
      document.head.append(element);
    }).finally(() => element.remove());
  }

  const { passage } = script.dataset;
  if (passage && /[?&]passage=/.test(location.search)) run(new URL(passage, HERE).href);

  /** @param {string} path */
  async function load(path) {
    const address = await run(path);
    const values = loadedShards.get(address);
    loadedShards.delete(address);
    return values;
  }

  if (location.protocol === "file:") {
    /** @type {any} */ (window).kbkitShard = (/** @type {any} */ values) => {
      loadedShards.set(/** @type {any} */ (document.currentScript).src, values);
    };
  }

  /** @type {any} */ (window).Worker = class {
    /**
     * @param {string | URL} url
     * @param {WorkerOptions} [options]
     */
    constructor(url, options) {
      if (!isOurs(url)) return new Native(url, options);
      const worker = location.protocol === "file:" ? new InPage() : new Native(url, options);
      watch(worker);
      return worker;
    }
  };
})();
