// Numbers and times as this page writes them, and the few elements it makes. Data reach the page as text only.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const NONE = "–";

/** A count or measurement: 1,234 or 0.123; text stays as it is. */
export function number(value) {
  if (value === null || value === undefined) return NONE;
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) || Math.abs(value) >= 1000 ? whole.format(value) : precise.format(value);
}

/** A number for the tick of an axis: 12K. */
export const tick = (value) => short.format(value);

export function share(value) {
  if (value === null || value === undefined) return NONE;
  const percent = value * 100;
  if (percent > 0 && percent < 0.1) return "< 0.1%";
  return `${percent.toFixed(percent > 99.9 && percent < 100 ? 2 : 1)}%`;
}

export function bytes(value) {
  for (const unit of ["B", "kB", "MB"]) {
    if (value < 1000) return `${precise.format(value)} ${unit}`;
    value /= 1000;
  }
  return `${precise.format(value)} GB`;
}

export function duration(seconds) {
  if (seconds < 1) return "less than a second";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${precise.format(seconds / 3600)} h`;
}

/** Seconds since 1970 as 19:05:07 in UTC. */
export const clock = (seconds, withSeconds = true) =>
  new Date(seconds * 1000).toISOString().slice(11, withSeconds ? 19 : 16);

export function make(name, kind = "", ...content) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(...content);
  return element;
}

export function draw(name, attributes = {}, ...content) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...content);
  return element;
}

/** Set text only where it changed, so that selections and screen readers are left alone. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Every state has its own shape besides its colour.
const SHAPES = {
  good: "M12 2a10 10 0 1 0 0 20a10 10 0 0 0 0-20zM7 12.5l3.5 3.5L17 9",
  bad: "M8 2h8l6 6v8l-6 6H8l-6-6V8zM8.5 8.5l7 7M15.5 8.5l-7 7",
  warn: "M12 2.5L22.5 21h-21zM12 9v6M12 17.6v.6",
  wait: "M12 2a10 10 0 1 0 0 20a10 10 0 0 0 0-20zM12 6.5V12l4 2.5",
  info: "M12 2a10 10 0 1 0 0 20a10 10 0 0 0 0-20zM12 11v6M12 7v.4",
  stop: "M3 3h18v18H3zM9 9h6v6H9z",
};

export function icon(kind) {
  const path = draw("path", {
    d: SHAPES[kind], fill: "none", stroke: "currentColor", "stroke-width": 2.2,
    "stroke-linecap": "round", "stroke-linejoin": "round",
  });
  return draw("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, path);
}
