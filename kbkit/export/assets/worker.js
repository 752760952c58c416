// Replaces the worker of Material's search box. It loads nothing before the first search.
import { Relay } from "./relay.js";

const HERE = new URL(".", self.location.href);
const ROOT = new URL("../../", HERE);

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

/** @param {string} path */
function run(path) {
  self.importScripts(new URL(path, ROOT).href);
}

async function start() {
  // not cached, since it names the files of the newest build
  const site = await load("assets/kbkit/site.js", { cache: "no-cache" });
  run(`assets/kbkit/${site.engine}`);
  return new /** @type {any} */ (self).kbkit.Service(site, { load, run, bytes }, post);
}

/** @param {any} message */
function post(message) {
  self.postMessage(message);
}

const relay = new Relay(start, post);
self.addEventListener("message", ({ data }) => relay.receive(data));
