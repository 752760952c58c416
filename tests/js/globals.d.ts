// What the scripts find in their world that TypeScript does not know of.

/** In a classic worker. */
declare function importScripts(...urls: string[]): void;

/** What the scripts of kbkit/export/stemmers.py set. */
declare var kbkitStemmers: Record<string, (word: string) => string>;

declare module "@eslint/js";
