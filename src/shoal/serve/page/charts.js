// Small charts in SVG: lines over time, and a histogram with a limit. Colours come from page.css.

import { clock, draw, make, number, tick } from "./words.js";

const SPANS = [60, 120, 300, 600]; // seconds: a run that is young fills its charts, too
const BREAK = 3.5; // seconds without a point: the line is interrupted

/** Round values from 0 up to at least `most`, about `count` of them. */
export function ticks(most, count) {
  const rough = Math.max(most, 1e-9) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const values = [];
  for (let place = 0; place === 0 || values.at(-1) < most; place += 1) values.push(place * step);
  return values;
}

/** Call `paint` now and whenever the width of `holder` changes. */
function keepWidth(holder, paint) {
  new ResizeObserver(() => paint()).observe(holder);
}

/** Lines over the last ten minutes. With the mouse or the arrow keys a moment can be chosen and read. */
export class TimeChart {
  constructor(holder, { title, lines, height = 210, small = false }) {
    Object.assign(this, { holder, title, lines, height, small, points: [], chosen: null, span: SPANS[0] });
    this.key = make("div", "key");
    this.svg = draw("svg", { tabindex: "0", role: "img" });
    holder.append(...(small ? [] : [this.key]), this.svg);
    this.svg.addEventListener("pointermove", (event) => this.choose(this.timeAt(event.offsetX)));
    this.svg.addEventListener("pointerleave", () => this.choose(null));
    this.svg.addEventListener("blur", () => this.choose(null));
    this.svg.addEventListener("keydown", (event) => this.onKey(event));
    keepWidth(holder, () => this.paint());
  }

  show(points) {
    this.points = points;
    this.paint();
  }

  onKey(event) {
    const last = this.points.length - 1;
    if (last < 0) return;
    const at = this.chosen === null ? last : this.points.indexOf(this.nearest(this.chosen));
    const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 60, PageDown: at + 60, Home: 0, End: last };
    if (event.key === "Escape") this.choose(null);
    else if (event.key in moves) this.choose(this.points[Math.min(last, Math.max(0, moves[event.key]))].t);
    else return;
    event.preventDefault();
  }

  choose(time) {
    this.chosen = time;
    this.paint();
  }

  nearest(time) {
    return this.points.reduce((best, point) => (Math.abs(point.t - time) < Math.abs(best.t - time) ? point : best));
  }

  timeAt(x) {
    return this.end - this.span + ((x - this.left) / (this.width - this.left - this.right)) * this.span;
  }

  paint() {
    this.width = Math.max(this.holder.clientWidth, 120);
    [this.left, this.right] = this.small ? [4, 4] : [48, 8];
    this.end = this.points.length ? this.points.at(-1).t : 0;
    const [top, bottom] = this.small ? [6, 4] : [8, 24];
    const age = this.points.length ? this.end - this.points[0].t : 0;
    this.span = SPANS.find((span) => span >= age) ?? SPANS.at(-1);
    const shown = this.points.filter((point) => point.t >= this.end - this.span);
    const most = Math.max(1, ...shown.flatMap((point) => this.lines.map((line) => point[line.key] ?? 0)));
    const values = ticks(most * 1.03, this.small ? 2 : 4);
    const x = (time) => this.left + ((time - this.end + this.span) / this.span) * (this.width - this.left - this.right);
    const y = (value) => this.height - bottom - (value / values.at(-1)) * (this.height - top - bottom);
    const parts = this.small ? [this.rule(y(0), "axis")] : this.frame(values, x, y);
    for (const line of this.lines) parts.push(...this.line(shown, line, x, y));
    const at = this.chosen !== null && shown.length ? this.nearest(this.chosen) : shown.at(-1);
    if (this.chosen !== null && at) parts.push(draw("line", { class: "cross", x1: x(at.t), x2: x(at.t), y1: top, y2: y(0) }));
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    this.svg.replaceChildren(...parts);
    this.tell(at);
  }

  rule(height, kind) {
    return draw("line", { class: kind, x1: this.left, x2: this.width - this.right, y1: height, y2: height });
  }

  frame(values, x, y) {
    const parts = values.flatMap((value) => [
      this.rule(y(value), value ? "rule" : "axis"),
      draw("text", { x: this.left - 8, y: y(value) + 4, "text-anchor": "end" }, tick(value)),
    ]);
    if (!this.points.length) return parts;
    const every = this.span / (this.width < 500 ? 2 : 5);
    for (let time = Math.ceil((this.end - this.span) / every) * every; time <= this.end; time += every) {
      const anchor = x(time) > this.width - 40 ? "end" : x(time) < this.left + 24 ? "start" : "middle";
      parts.push(draw("text", { x: x(time), y: this.height - 6, "text-anchor": anchor }, clock(time, this.span < 300)));
    }
    return parts;
  }

  line(points, { key, kind }, x, y) {
    const runs = [];
    let before = null;
    for (const point of points) {
      if (point[key] === null || point[key] === undefined) { before = null; continue; }
      if (before === null || point.t - before > BREAK) runs.push([]);
      runs.at(-1).push([x(point.t).toFixed(1), y(point[key]).toFixed(1)]);
      before = point.t;
    }
    return runs.flatMap((run) => {
      const path = run.map((pair) => pair.join(",")).join("L");
      const dot = run.length === 1 ? `h.1` : "";
      return [
        draw("path", { class: `area ${kind}`, d: `M${path}L${run.at(-1)[0]},${y(0)}L${run[0][0]},${y(0)}Z` }),
        draw("path", { class: `line ${kind}`, d: `M${path}${dot}`, "stroke-linecap": "round" }),
      ];
    });
  }

  tell(at) {
    const words = this.lines.map((line) => `${line.name} ${at ? number(at[line.key]) : number(null)}`);
    const when = at ? `at ${clock(at.t)} UTC` : "no numbers yet";
    this.svg.setAttribute("aria-label", `${this.title}, ${when}: ${words.join(", ")}. Arrow keys choose a moment.`);
    if (this.small) return;
    const items = this.lines.map((line, place) => {
      const sample = draw("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" }, draw("path", { class: `line ${line.kind}`, d: "M1,5H25" }));
      return make("span", "", sample, `${line.name} `, make("b", "", words[place].slice(line.name.length + 1)));
    });
    this.key.replaceChildren(...items, make("span", "soft", when));
  }
}

/** How long published rows waited: bars of [upper bound, rows], and a line where the deadline is. */
export class DelayChart {
  constructor(holder, height = 215) {
    Object.assign(this, { holder, height, deadline: null });
    this.svg = draw("svg", { role: "img" });
    holder.append(this.svg);
    keepWidth(holder, () => this.paint());
  }

  show(deadline) {
    this.deadline = deadline;
    this.paint();
  }

  paint() {
    if (!this.deadline) return;
    const { unit, allowed, longest, histogram } = this.deadline;
    const width = Math.max(this.holder.clientWidth, 160);
    const [left, right, top, bottom] = [40, 12, 26, 36];
    const most = Math.max(1e-9, allowed ?? 0, longest ?? 0, ...histogram.map(([upper]) => upper)) * 1.04;
    const scale = ticks(most, width > 300 ? 4 : 2).filter((value) => value <= most);
    const values = ticks(Math.max(1, ...histogram.map(([, count]) => count)), 3);
    const x = (value) => left + (value / most) * (width - left - right);
    const y = (count) => this.height - bottom - (count / values.at(-1)) * (this.height - top - bottom);
    const parts = values.flatMap((value) => [
      draw("line", { class: value ? "rule" : "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, tick(value)),
    ]);
    histogram.forEach(([upper, count], place) => {
      const from = x(place ? histogram[place - 1][0] : 0);
      const bar = { x: from + 0.5, y: y(count), width: Math.max(1, x(upper) - from - 1), height: y(0) - y(count) };
      const late = allowed !== null && upper > allowed * 1.0001;
      parts.push(draw("rect", { class: late ? "bar over" : "bar", ...bar }));
    });
    for (const value of scale) {
      parts.push(draw("text", { x: x(value), y: this.height - 20, "text-anchor": "middle" }, tick(value)));
    }
    parts.push(draw("text", { x: (left + width - right) / 2, y: this.height - 4, "text-anchor": "middle" }, `delay in ${unit}`));
    if (allowed !== null) {
      const at = x(allowed);
      parts.push(
        draw("line", { class: "limit", x1: at, x2: at, y1: top - 6, y2: y(0) }),
        draw("text", { class: "limit-word", x: at, y: 13, "text-anchor": at > width * 0.6 ? "end" : "middle" }, `deadline ${number(allowed)}`),
      );
    }
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    const words = `Longest delay ${number(longest)} ${unit}; the deadline is ${number(allowed)} ${unit}.`;
    this.svg.setAttribute("aria-label", words);
    this.svg.replaceChildren(...parts);
  }
}

/** A table of names with bars: rows are [name, length from 0 to 1, words]. */
export function barTable(head, rows, kind = "") {
  const top = make("tr", "", make("th", "", head[0]), make("th", ""), make("th", "n", head[1]));
  const body = rows.map(([name, length, words]) => {
    const bar = make("i", kind);
    bar.style.width = `${Math.min(1, Math.max(0, length)) * 100}%`;
    const label = make("th", "", name);
    label.scope = "row";
    return make("tr", "", label, make("td", "meter", make("div", "", bar)), make("td", "n", words));
  });
  return make("table", "", make("thead", "hidden", top), make("tbody", "", ...body));
}
