// The live page: takes snapshots from the connection and puts them into index.html.

import { DelayChart, TimeChart, barTable } from "./charts.js";
import { Connection } from "./connection.js";
import { PlaceMap } from "./map.js";
import { WhatIf } from "./whatif.js";
import { NONE, bytes, clock, duration, icon, make, number, say, share } from "./words.js";

const STALE = 6; // seconds without a snapshot: say so
const part = (name) => document.getElementById(name);

const charts = {
  rates: new TimeChart(part("rates"), {
    title: "Rows a second",
    lines: [{ key: "in_per_s", name: "in", kind: "in" }, { key: "out_per_s", name: "published", kind: "out" }],
  }),
  lag: new TimeChart(part("lag"), { title: "Lag", height: 56, small: true, lines: [{ key: "lag", name: "rows", kind: "lag" }] }),
  pending: new TimeChart(part("pending"), {
    title: "Pending", height: 56, small: true, lines: [{ key: "pending", name: "rows", kind: "waiting" }],
  }),
  memory: new TimeChart(part("memory"), {
    title: "Memory", height: 56, small: true, lines: [{ key: "memory_mb", name: "MB", kind: "memory" }],
  }),
};
const delay = new DelayChart(part("delay"));
const map = new PlaceMap(part("map"), part("map-note"));
const whatIf = new WhatIf({
  panel: part("whatif-panel"), form: part("sliders"), state: part("whatif-state"), result: part("whatif-result"),
});

let link = { kind: "wait" };
let latest = null;
let points = [];
let paused = false;
let arrived = 0;

const connection = new Connection({
  onChange(state) {
    link = { ...state, until: performance.now() + (state.wait ?? 0) };
    arrived = performance.now();
    if (state.kind !== "live") whatIf.interrupted();
    showStatus();
  },
  onSnapshot(snapshot, series) {
    [latest, points] = [snapshot, series];
    arrived = performance.now();
    if (!paused) showSnapshot();
    showStatus();
  },
  onWhatIf: (result) => whatIf.receive(result),
});

function showSnapshot() {
  const { run, totals, promise, settings, deadline, loss, dead_letters: dead, checkpoints, places } = latest;
  say(part("policy"), run.policy);
  say(part("about"), `${run.method} · ${run.source} → ${run.sink} · started ${run.started.replace("T", " ").replace("Z", " UTC")}`);
  showWarnings(latest.warnings ?? []);
  showPromises(promise);
  showTotals(totals);
  charts.rates.show(points);
  say(part("rates-note"), `last ${duration(charts.rates.span)}, UTC`);
  for (const [name, key] of [["lag", "lag"], ["pending", "pending"], ["memory", "memory_mb"]]) {
    const value = latest.series[key];
    part(`${name}-spark`).hidden = (value ?? null) === null && points.every((point) => (point[key] ?? null) === null);
    say(part(`${name}-now`), number(value));
    charts[name].show(points);
  }
  showDelay(deadline);
  part("loss-panel").hidden = loss.length === 0;
  part("loss").replaceChildren(barTable(["column", "loss"], loss.map((one) => [one.column, one.loss, share(one.loss)])));
  showDead(dead, totals.in);
  showCheckpoints(checkpoints);
  part("map-panel").hidden = !places?.length;
  if (places?.length) map.show(places);
  whatIf.offer(settings, run);
  say(part("foot"), `Snapshot ${number(latest.number)} of ${latest.at.replace("T", " ").replace("Z", " UTC")}`);
}

function showWarnings(sentences) {
  const box = part("warnings");
  box.hidden = sentences.length === 0;
  if ([...box.children].map((one) => one.textContent).join("\n") === sentences.join("\n")) return;
  box.replaceChildren(...sentences.map((sentence) => make("li", "", icon("warn"), sentence)));
}

function verdictOf({ holds, promised }) {
  if ((promised ?? null) === null) return ["info", "not promised"];
  if (holds === true) return ["good", "kept"];
  return holds === false ? ["bad", "broken"] : ["wait", "not measured yet"];
}

function showPromises(promises) {
  const scopes = [...new Set(promises.map((one) => one.scope).filter(Boolean))];
  say(part("promise-note"), scopes.length === 1 ? `measured over the ${scopes[0]}` : "");
  part("promises").replaceChildren(...promises.map((one) => {
    const [kind, word] = verdictOf(one);
    const sign = one.bound === "most" ? "≤" : "≥";
    const value = one.words.startsWith("share ") ? share : number;
    const bound = (one.promised ?? null) === null ? NONE : `${sign} ${value(one.promised)}`;
    const words = make("div", "words", one.words);
    if (scopes.length > 1 && one.scope) words.append(make("small", "", `measured over the ${one.scope}`));
    const promised = make("div", "side", make("span", "", "promised"), make("b", "", bound));
    const measured = make("div", "side measured", make("span", "", "measured now"), make("b", "", value(one.measured)));
    const verdict = make("div", "verdict", icon(kind), word);
    measured.dataset.kind = kind;
    verdict.dataset.kind = kind;
    const item = make("li", "", words, promised, measured, verdict);
    if (typeof one.promised === "number" && typeof one.measured === "number") item.append(gauge(one, kind));
    return item;
  }));
}

/** A bar for what is measured and a mark where the promise is. */
function gauge({ promised, measured }, kind) {
  const most = Math.max(promised, measured) * 1.08 || 1;
  const [bar, mark] = [make("i"), make("u")];
  bar.style.width = `${(measured / most) * 100}%`;
  mark.style.left = `${(promised / most) * 100}%`;
  const box = make("div", "gauge", bar, mark);
  box.dataset.kind = kind;
  box.setAttribute("aria-hidden", "true");
  return box;
}

function showTotals(totals) {
  const shares = [["published", "Published"], ["suppressed", "Suppressed"], ["dead", "Dead letters"], ["pending", "Pending"]];
  const all = totals.in || 1;
  const bar = part("totals-bar");
  if (!bar.children.length) bar.append(...shares.map(([key]) => make("i", key)));
  shares.forEach(([key], place) => { bar.children[place].style.width = `${(totals[key] / all) * 100}%`; });
  const list = part("totals");
  const rows = [["in", "In"], ...shares];
  if (!list.children.length) {
    for (const [key, name] of rows) {
      const [figure, more] = [make("span"), make("small")];
      figure.id = `total-${key}`;
      const swatch = key === "in" ? [] : [make("i", key)];
      list.append(make("div", "", make("dt", "", ...swatch, name), make("dd", "", figure, more)));
    }
  }
  rows.forEach(([key], place) => {
    const [figure, more] = list.children[place].querySelector("dd").children;
    say(figure, number(totals[key]));
    say(more, key === "in" ? "rows since the start" : share(totals.in ? totals[key] / totals.in : null));
  });
}

function showDelay(deadline) {
  part("delay-panel").hidden = !deadline;
  if (!deadline) return;
  delay.show(deadline);
  say(part("delay-note"), deadline.longest === null ? "" : `longest ${number(deadline.longest)} ${deadline.unit}`);
}

function showDead(dead, all) {
  const sum = dead.reduce((total, one) => total + one.count, 0);
  say(part("dead-note"), sum ? `${number(sum)} rows, ${share(sum / Math.max(1, all))} of what came in` : "");
  const most = Math.max(1, ...dead.map((one) => one.count));
  const rows = dead.map((one) => [one.reason, one.count / most, number(one.count)]);
  const none = make("p", "nothing", icon("good"), "No row was refused.");
  part("dead").replaceChildren(rows.length ? barTable(["reason", "rows"], rows, "dead") : none);
}

function showCheckpoints(checkpoints) {
  if (!checkpoints) return say(part("checkpoints"), "no checkpoints: a restart begins anew");
  const { count, age_s: age, bytes: size } = checkpoints;
  if (!count) return say(part("checkpoints"), "no checkpoint yet");
  const last = [age === null ? "" : `the last ${duration(age)} ago`, size === null ? "" : bytes(size)].filter(Boolean);
  return say(part("checkpoints"), `${number(count)} ${count === 1 ? "checkpoint" : "checkpoints"}${last.length ? `, ${last.join(", ")}` : ""}`);
}

/** One sentence about everything: the connection first, then the promise, then the run. */
function statusNow() {
  const old = latest ? `The numbers below are from ${clock(latest.series.t)} UTC.` : "There are no numbers yet.";
  if (link.kind === "refused") {
    return ["bad", "Access refused", `This page's token is no longer valid. Open the address that shoal printed when it was last started. ${old}`];
  }
  if (link.kind === "lost") return ["warn", "Connection lost", `The page tries to reach shoal again by itself. ${old}`];
  if (!latest) return ["wait", "Connecting", "The page waits for the first numbers."];
  const { run, verdict } = latest;
  const said = verdict.sentence.replace(/^promise broken: /, "");  // that is the word before it
  const sentence = `${said[0].toUpperCase()}${said.slice(1)}. ${run.sentence}`;
  if (run.state === "failed") return ["bad", "Failed", run.sentence];
  if (verdict.state === "broken") return ["bad", "Promise broken", sentence];
  if (run.state === "stopped") return ["stop", "Stopped", run.sentence];
  if (performance.now() - arrived > STALE * 1000) {
    return ["warn", "No news", `The connection is open, but no numbers came for ${duration((performance.now() - arrived) / 1000)}. ${old}`];
  }
  if (run.state === "compiling") return ["wait", "Compiling", run.sentence];
  if (run.state === "waiting") return ["wait", "Waiting", run.sentence];
  return verdict.state === "kept" ? ["good", "Running", sentence] : ["wait", "Running", sentence];
}

let announced = "";

function showStatus() {
  const [kind, word, sentence] = statusNow();
  const box = part("status");
  if (box.dataset.kind !== kind || !part("status-icon").children.length) part("status-icon").replaceChildren(icon(kind));
  box.dataset.kind = kind;
  say(part("status-word"), `${word}.`);
  say(part("status-sentence"), sentence);
  if (announced !== word) {
    announced = word;
    say(part("announce"), `${word}. ${sentence}`);
  }
  const lost = link.kind === "lost" || link.kind === "refused";
  document.body.classList.toggle("lost", lost);
  const left = Math.max(0, Math.ceil(((link.until ?? 0) - performance.now()) / 1000));
  const pills = {
    live: ["good", "live"], wait: ["wait", "connecting …"],
    lost: ["warn", left ? `lost, next attempt in ${left} s` : "connecting …"], refused: ["bad", "access refused"],
  };
  const [pillKind, pill] = paused && link.kind === "live" ? ["warn", "paused"] : pills[link.kind];
  part("connection").dataset.kind = pillKind;
  say(part("connection"), pill);
  document.title = latest ? `${word} · ${latest.run.policy} · shoal` : "shoal";
}

part("pause").addEventListener("click", () => {
  paused = !paused;
  part("pause").setAttribute("aria-pressed", String(paused));
  say(part("pause"), paused ? "Resume" : "Pause");
  if (!paused && latest) showSnapshot();
  showStatus();
});

const THEMES = ["system", "light", "dark"];

function showTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  say(part("theme"), `Theme: ${theme}`);
}

part("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "system";
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  showTheme(next);
  try {
    localStorage.setItem("shoal-theme", next);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
});
showTheme(document.documentElement.dataset.theme ?? "system");

addEventListener("online", () => { if (link.kind === "lost") connection.start(); });
setInterval(showStatus, 1000);
showStatus();
connection.start();
