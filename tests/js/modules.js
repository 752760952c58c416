// Node 18 takes a .js file for a CommonJS module unless a package.json beside it says otherwise.
// The package has none: its files are for browsers. Use: node --import ./modules.js FILE
import { register } from "node:module";

const HOOK = `export const load = (url, context, next) =>
  next(url, url.includes("/kbkit/") ? { ...context, format: "module" } : context);`;

register(`data:text/javascript,${encodeURIComponent(HOOK)}`);
