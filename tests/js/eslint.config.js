// ESLint for the JavaScript of the package, which browsers run, and for its tests, which Node runs.
import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/node_modules/"] },
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": "error",
      "no-shadow": "error",
      // what a class takes for those that extend it
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
    },
  },
  { files: ["kbkit/**"], languageOptions: { globals: { ...globals.browser, ...globals.worker } } },
  {
    files: ["tests/**"],
    languageOptions: { globals: { ...globals.node, kbkitStemmers: "readonly" } },
  },
];
