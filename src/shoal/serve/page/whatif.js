// Sliders for settings, and what the recent rows would have become under them: now and then, side by side.

import { NONE, make, number, say, share } from "./words.js";

const PARTS = [["published", "Published"], ["suppressed", "Suppressed"], ["pending", "Pending"]];
const MEASURES = [["loss", "Loss", share], ["smallest_class", "Smallest class", number], ["delay", "Mean delay", number]];

export class WhatIf {
  constructor({ panel, form, state, result }) {
    Object.assign(this, { panel, form, state, result, inputs: new Map(), asked: null, sending: false, early: [], shape: "" });
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Show a slider for each setting; what a reader has moved stays where it is. */
  offer(settings, run) {
    this.run = run;
    const shape = JSON.stringify(settings);
    if (shape === this.shape) return;
    this.shape = shape;
    this.settings = settings;
    this.inputs.clear();
    this.panel.hidden = settings.length === 0;
    const back = make("button", "", "Back to the running values");
    back.type = "button";
    back.addEventListener("click", () => this.reset());
    this.form.replaceChildren(...settings.map((setting) => this.slider(setting)), back);
  }

  slider({ key, value, least, most, step, words, unit }) {
    const range = make("input");
    const field = make("input");
    range.type = "range";
    field.type = "number";
    range.id = `try-${key}`;
    for (const input of [range, field]) Object.assign(input, { min: least, max: most, step, value });
    field.setAttribute("aria-label", `${key}, typed`);
    const label = make("label", "", key);
    label.htmlFor = range.id;
    range.addEventListener("input", () => { field.value = range.value; });
    range.addEventListener("change", () => this.ask());
    field.addEventListener("change", () => {
      const typed = Math.min(most, Math.max(least, Number(field.value) || value));
      range.value = String(typed);
      field.value = range.value;
      this.ask();
    });
    this.inputs.set(key, { range, field });
    const running = `${words ? `${words}; ` : ""}running with ${number(value)}${unit ? ` ${unit}` : ""}`;
    return make("div", "slider", label, field, range, make("span", "soft", running));
  }

  reset() {
    for (const { key, value } of this.settings) {
      const { range, field } = this.inputs.get(key);
      range.value = String(value);
      field.value = range.value;
    }
    this.asked = null;
    this.result.replaceChildren();
    say(this.state, "Move a slider to compare.");
  }

  /** Ask for the chosen values. One request is on its way at a time: the order of ids is then the order of asking. */
  async ask() {
    const chosen = {};
    for (const [key, { range }] of this.inputs) chosen[key] = Number(range.value);
    this.asked = { id: null, chosen };
    say(this.state, "Computing on a sample …");
    if (this.sending) return;
    this.sending = true;
    try {
      for (let sent = null; this.asked && this.asked !== sent;) {
        sent = this.asked;
        await this.post(sent);
      }
    } catch {
      this.interrupted();
    } finally {
      this.sending = false;
    }
  }

  async post(asked) {
    const answer = await fetch("/api/whatif", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked.chosen),
    });
    const body = await answer.json();
    if (this.asked !== asked) return;
    if (!answer.ok) {
      this.asked = null;
      say(this.state, body.error ?? "The server refused these settings.");
      return;
    }
    asked.id = body.id;
    const early = this.early.find((result) => result.id === body.id);
    if (early) this.show(early);
  }

  /** A result for this page or another one. It may arrive before the answer that names its id. */
  receive(result) {
    this.early = [...this.early.slice(-7), result];
    if (!this.asked || this.asked.id === null || result.id < this.asked.id) return;
    if (result.id === this.asked.id) this.show(result);
    else {
      this.asked = null;
      say(this.state, "Another page asked for something else meanwhile. Move a slider to try again.");
    }
  }

  interrupted() {
    this.early = []; // a server that starts again counts ids from 1 again
    if (!this.asked) return;
    this.asked = null;
    say(this.state, "The connection was lost before the result came. Move a slider to try again.");
  }

  show({ settings, now, then, rows, seconds, error, covers, unit }) {
    this.asked = null;
    if (error) {
      say(this.state, error);
      return;
    }
    const short = covers === undefined || unit !== "seconds" ? "" : ` that came within ${number(covers)} seconds`;
    const ends = covers === undefined ? "" : " They are few for such a deadline, so they were decided as if the stream had ended with them; with more rows the loss is usually smaller.";
    say(this.state, `On a sample of ${number(rows)} recent rows${short}, computed in ${number(seconds)} s.${ends}`);
    const moved = this.settings.filter(({ key, value }) => key in settings && settings[key] !== value);
    const change = moved.map(({ key, value }) => `${key} ${number(value)} → ${number(settings[key])}`).join(", ");
    const heading = make("p", "", make("strong", "", change || "The settings that are running"));
    const bars = make("div", "pair", "now", stack(now), "then", stack(then));
    bars.setAttribute("aria-hidden", "true");
    const rowsOf = [...PARTS.map(([key, name]) => [key, name, share]), ...MEASURES]
      .filter(([key]) => (now[key] ?? null) !== null || (then[key] ?? null) !== null)
      .map(([key, name, words]) => line(key === "smallest_class" && this.run.family === "z" ? "Smallest crowd" : name, now[key], then[key], words));
    const head = make("tr", "", make("th", ""), make("th", "n", "now"), make("th", "n", "then"), make("th", "n", "change"));
    const parts = [heading, bars, make("table", "", make("thead", "", head), make("tbody", "", ...rowsOf))];
    if (change) {
      const lines = moved.map(({ key, unit: own }) => make("code", "", `${key} = ${own === "seconds" ? `"${settings[key]}s"` : settings[key]}`));
      const advice = make("p", "soft", "To run with it, set ");
      lines.forEach((text, place) => advice.append(place ? " and " : "", text));
      advice.append(` in ${this.run.policy}; `, make("code", "", "shoal run --upgrade"), " continues with it.");
      parts.push(advice);
    }
    this.result.replaceChildren(...parts);
  }
}

function stack(shares) {
  const bar = make("div", "stack thin");
  for (const [key] of PARTS) {
    const part = make("i", key);
    part.style.width = `${(shares[key] ?? 0) * 100}%`;
    bar.append(part);
  }
  return bar;
}

function line(name, now, then, words) {
  const label = make("th", "", name);
  label.scope = "row";
  let change = NONE;
  if (typeof now === "number" && typeof then === "number") {
    const by = then - now;
    const points = words === share ? `${(Math.abs(by) * 100).toFixed(1)} points` : number(Math.abs(by));
    change = Math.abs(by) < 1e-9 ? "same" : `${by > 0 ? "▲" : "▼"} ${points}`;
  }
  return make("tr", "", label, make("td", "n", words(now)), make("td", "n then", words(then)), make("td", "n", change));
}
