// Forms of panels: problems appear next to their fields, and typed text is kept.
import { make, makeButton } from "../../export/assets/elements.js";

/**
 * @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Control
 * @typedef {{name: string, control: Control, problem: HTMLElement, element: HTMLElement}} Field
 */

let fields = 0;

/**
 * A control with a label and room for a problem.
 *
 * @param {string} label
 * @param {string} name
 * @param {string} value
 * @param {Control} [control]  by default a line of text
 * @param {string[]} [offered]  suggested values
 * @returns {Field}
 */
export function labelled(
  label,
  name,
  value,
  control = make("input", { type: "text" }),
  offered = [],
) {
  const id = `kbkit-field-${(fields += 1)}`;
  control.id = id;
  control.value = value;
  control.setAttribute("aria-describedby", `${id}-problem`);
  const problem = make("span", { class: "kbkit-field-problem", id: `${id}-problem`, role: "alert" }); // prettier-ignore
  const list = make("datalist", { id: `${id}-list` }, offered.map((each) => make("option", { value: each }))); // prettier-ignore
  if (offered.length) {
    control.setAttribute("list", list.id);
  }
  const parts = [make("label", { for: id }, label), control, problem, offered.length > 0 && list];
  return { name, control, problem, element: make("div", { class: "kbkit-field" }, parts) };
}

export class Form {
  /**
   * @param {string} title
   * @param {string} label  of the button that submits it
   * @param {Field[]} controls
   * @param {object} handlers
   * @param {(values: Record<string, string>, over: boolean) => Promise<any>} handlers.submit
   *   resolves to an object with a `problem` after a failure
   * @param {() => void} handlers.close
   */
  constructor(title, label, controls, { submit, close }) {
    this.controls = controls;
    this.submit = submit;
    this.close = close;
    this.problem = make("div", { class: "kbkit-field-problem", role: "alert" });
    this.cancel = makeButton("Cancel", close);
    this.element = make(
      "form",
      {
        class: "kbkit-dialog",
        "aria-label": title,
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.send(false);
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          event.stopPropagation(); // hides keys from the notebook
          if (event.key === "Escape") {
            close();
          }
        },
      },
      controls.map(({ element }) => element),
      this.problem,
      make("button", { type: "submit", class: "kbkit-primary" }, label),
      " ",
      this.cancel,
    );
  }

  focus() {
    this.controls[0].control.focus();
  }

  done() {
    this.close();
  }

  /** @param {boolean} over  whether to overwrite changes made elsewhere */
  async send(over) {
    const values = Object.fromEntries(
      this.controls.map(({ name, control }) => [name, control.value]),
    );
    const { problem } = await this.submit(values, over);
    this.problem.replaceChildren();
    for (const { control, problem: place } of this.controls) {
      control.removeAttribute("aria-invalid");
      place.textContent = "";
    }
    if (!problem) {
      this.done();
      return;
    }
    const field = this.controls.find(({ name }) => name === problem.field);
    if (field) {
      field.problem.textContent = problem.text;
      field.control.setAttribute("aria-invalid", "true");
      field.control.focus();
      return;
    }
    this.problem.append(problem.text);
    if (problem.now) {
      this.problem.append(...this.conflict(values, problem.now));
    }
  }

  /**
   * Show current values that differ from the typed ones.
   *
   * @param {Record<string, string>} values
   * @param {Record<string, any>} now
   */
  conflict(values, now) {
    const texts = Object.entries(now).map(([name, value]) => [name, Array.isArray(value) ? value.join("\n") : value]); // prettier-ignore
    const changed = texts.filter(([name, value]) => name in values && values[name] !== value);
    const rows = changed.flatMap(([name, value]) => [make("dt", {}, `${name} is now`), make("dd", { dir: "auto" }, value || "empty")]); // prettier-ignore
    const overwrite = makeButton("Overwrite with mine", () => this.send(true));
    return [make("dl", {}, rows), overwrite];
  }
}

/**
 * Show a form, with the focus, until it is submitted or closed.
 *
 * @param {HTMLElement} place
 * @param {string} title
 * @param {string} label  of the button that submits it
 * @param {Field[]} controls
 * @param {Form["submit"]} submit
 * @param {() => void} [closed]
 */
export function showForm(place, title, label, controls, submit, closed = () => {}) {
  const close = () => {
    place.replaceChildren();
    closed();
  };
  const form = new Form(title, label, controls, { submit, close });
  place.replaceChildren(form.element);
  form.focus();
}
