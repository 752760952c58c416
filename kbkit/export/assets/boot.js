// Runs in every page before the theme. Tells the search worker when a reader enters the search box,
// so that it loads its data while they type. Without a server (file://), workers cannot start, so
// the search runs in the page. Also loads the script that marks a passage, if the address has one.
import { Relay } from "./relay.js";

const script = /** @type {HTMLScriptElement} */ (document.currentScript);
const HERE = new URL(".", script.src);
const ROOT = new URL("../../", HERE);
const HAS_SERVER = location.protocol !== "file:";
const Native = window.Worker;

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
    if (kbkit === "model") known(model);
  });
}

/** Replaces a worker in a page without a server. */
class InPage extends EventTarget {
  #relay = new Relay(
    () => this.#start(),
    (data) => this.#post(data),
  );

  /** @param {any} message */
  postMessage(message) {
    this.#relay.receive(message);
  }

  terminate() {}

  async #start() {
    const site = await load("assets/kbkit/site.js");
    await run(`assets/kbkit/${site.engine}`);
    const { kbkit } = /** @type {any} */ (window);
    return new kbkit.Service(site, { load, run }, (/** @type {any} */ data) => this.#post(data));
  }

  /** @param {any} data */
  #post(data) {
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

/** @param {string} path */
async function load(path) {
  const address = await run(path);
  const values = loadedShards.get(address);
  loadedShards.delete(address);
  return values;
}

const { passage } = script.dataset;
if (passage && /[?&]passage=/.test(location.search)) run(new URL(passage, HERE).href);

if (!HAS_SERVER) {
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
    const isOurs = new URL(url, location.href).href.startsWith(HERE.href);
    if (!isOurs) return new Native(url, options);
    const worker = HAS_SERVER ? new Native(url, options) : new InPage();
    watch(worker);
    return worker;
  }
};
