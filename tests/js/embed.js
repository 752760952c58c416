// Embeds texts with the model of a site: reads {folder, texts} from a file, and writes the vector of each
// and the milliseconds that it took to another.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Transformer } from "../../kbkit/export/assets/transformer.js";
import { diskBytes } from "./files.js";

const [input, output] = process.argv.slice(2);
const { folder, texts } = JSON.parse(readFileSync(input, "utf8"));
const model = await Transformer.opened((name) => diskBytes(join(folder, name)));

const found = [];
for (const text of texts) {
  const start = performance.now();
  const vector = await model.vector(text);
  found.push({ vector: [...vector], milliseconds: performance.now() - start });
}
writeFileSync(output, JSON.stringify(found));
