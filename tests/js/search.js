// Searches an index with the engine of the site: reads {folder, asked: [[query, options], ...]} from a file, and
// writes the hits of each query, and how many bytes of shards were read, to another.
import { readFileSync, writeFileSync } from "node:fs";

import { Engine } from "../../kbkit/export/assets/engine.js";
import { diskFiles } from "./files.js";

const [input, output] = process.argv.slice(2);
const { folder, asked } = JSON.parse(readFileSync(input, "utf8"));
const files = diskFiles(folder);
const kbs = [{ name: "kb", title: "KB", base: "", folder: "" }];
const engine = new Engine({ kbs, directories: false }, files);

const found = [];
for (const [query, options] of asked) {
  const start = performance.now();
  const hits = await engine.search(query, options);
  found.push({ hits, milliseconds: performance.now() - start });
}
writeFileSync(output, JSON.stringify({ found, read: files.read }));
