// Searches an index with the engine of the site: reads {folder, asked: [[query, options], ...], model} from a file,
// and writes the hits of each query, and which shards were read, to another. With the folder of a model, queries are
// embedded by it.
import { readFileSync, writeFileSync } from "node:fs";

import { Engine } from "../../kbkit/export/assets/engine.js";
import { diskBytes, diskFiles } from "./files.js";

const [input, output] = process.argv.slice(2);
const { folder, asked, model } = JSON.parse(readFileSync(input, "utf8"));
const files = diskFiles(folder);
const kbs = [{ name: "kb", title: "KB", base: "", folder: "" }];
const site = { kbs, directories: false, model };
const engine = new Engine(site, { ...files, bytes: diskBytes });
if (model && !(await engine.loadModel())) throw new Error(model);

const found = [];
for (const [query, options] of asked) {
  const start = performance.now();
  const hits = await engine.search(query, options);
  found.push({ hits, milliseconds: performance.now() - start });
}
writeFileSync(output, JSON.stringify({ found, read: files.read }));
