// Files of an index as the engine reads them, from a folder.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runInThisContext } from "node:vm";

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
      return JSON.parse(readFileSync(join(folder, path), "utf8").slice("kbkitShard(".length, -3));
    },
    /** @param {string} path */
    run: (path) => {
      runInThisContext(readFileSync(join(folder, path), "utf8"));
    },
  };
}
