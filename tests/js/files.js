// Files of an index as the engine reads them, from a folder.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runInThisContext } from "node:vm";

import { readShard } from "../../kbkit/export/assets/packing.js";

/** What a file holds. @param {string} path */
export async function diskBytes(path) {
  const data = readFileSync(path);
  return data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
}

/** @param {string} folder */
export function diskFiles(folder) {
  /** @type {string[]} */
  const read = [];
  return {
    read,
    /** @param {string} path */
    load: async (path) => {
      read.push(path);
      return readShard(readFileSync(join(folder, path), "utf8"));
    },
    /** @param {string} path */
    run: (path) => {
      runInThisContext(readFileSync(join(folder, path), "utf8"));
    },
  };
}
