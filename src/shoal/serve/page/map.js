// Published cells on a plain grid of longitude and latitude, with coordinates and a scale; no map from elsewhere.

import { draw, number } from "./words.js";
import { ticks } from "./charts.js";

const KM_PER_DEGREE = 111.32;
const MOST_LINES = 48;

const area = (place) => (place.east - place.west) * (place.north - place.south);

/** The cells to be framed: the finest that have nine tenths of the rows. Coarser ones reach beyond the frame. */
function finest(places) {
  const all = places.reduce((sum, place) => sum + place.count, 0);
  let rows = 0;
  return [...places].sort((one, other) => area(one) - area(other)).filter((place) => {
    const isNeeded = rows < all * 0.9;
    rows += place.count;
    return isNeeded;
  });
}

/** Lines that divide a span: the edges of cells, or evenly spaced ones if those are too many. */
function lines(edges, from, to, most) {
  const inside = [...new Set([from, to, ...edges.filter((edge) => edge > from && edge < to)])].sort((one, other) => one - other);
  if (inside.length <= most) return inside;
  return Array.from({ length: most }, (_, place) => from + ((to - from) * place) / (most - 1));
}

/** Published cells overlap where rows were generalized differently: each counts evenly for all it may stand for. */
function spread(places, box) {
  const east = lines(places.flatMap((place) => [place.west, place.east]), box.west, box.east, MOST_LINES);
  const north = lines(places.flatMap((place) => [place.south, place.north]), box.south, box.north, MOST_LINES);
  const found = [];
  for (let column = 1; column < east.length; column += 1) {
    for (let row = 1; row < north.length; row += 1) {
      const cell = { west: east[column - 1], east: east[column], south: north[row - 1], north: north[row] };
      const count = places.reduce((sum, place) => sum + place.count * overlap(cell, place), 0);
      if (count > 0) found.push({ ...cell, count, density: count / area(cell) });
    }
  }
  return found.sort((one, other) => other.density - one.density);
}

/** The share of a place that is inside a cell. A place without extent is a point. */
function overlap(cell, place) {
  const side = (low, high, from, to) => (to > from ? Math.max(0, Math.min(high, to) - Math.max(low, from)) / (to - from) : Number(from >= low && from < high));
  return side(cell.west, cell.east, place.west, place.east) * side(cell.south, cell.north, place.south, place.north);
}

function bounds(places) {
  const west = Math.min(...places.map((place) => place.west));
  const east = Math.max(...places.map((place) => place.east));
  const south = Math.min(...places.map((place) => place.south));
  const north = Math.max(...places.map((place) => place.north));
  const edge = Math.max((east - west) * 0.06, (north - south) * 0.06, 0.002);
  return { west: west - edge, east: east + edge, south: Math.max(-90, south - edge), north: Math.min(90, north + edge) };
}

function degrees(value, letters, digits) {
  return `${Math.abs(value).toFixed(digits)}° ${value < 0 ? letters[1] : letters[0]}`;
}

function gridLines(from, to, count) {
  const step = ticks(to - from, count)[1];
  const values = [];
  for (let place = Math.ceil(from / step); place * step <= to; place += 1) values.push(place * step);
  return { values, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** The map. Cells can be chosen with the mouse or the arrow keys; `note` then says what is in them. */
export class PlaceMap {
  constructor(holder, note) {
    Object.assign(this, { holder, note, places: [], chosen: null });
    this.svg = draw("svg", { role: "img", tabindex: "0" });
    holder.append(this.svg);
    this.svg.addEventListener("keydown", (event) => this.onKey(event));
    this.svg.addEventListener("pointerleave", () => this.choose(null));
    this.svg.addEventListener("blur", () => this.choose(null));
    new ResizeObserver(() => this.paint()).observe(holder);
  }

  show(places) {
    const box = bounds(finest(places));
    this.published = places;
    this.places = spread(places, box);
    if (this.chosen !== null && this.chosen >= this.places.length) this.chosen = null;
    this.paint();
  }

  onKey(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") this.choose(null);
    else if (step) this.choose(((this.chosen ?? (step > 0 ? -1 : 0)) + step + this.places.length) % this.places.length);
    else return;
    event.preventDefault();
  }

  choose(place) {
    if (place === this.chosen) return;
    this.chosen = place;
    this.paint();
  }

  paint() {
    if (!this.places.length) return;
    const box = bounds(finest(this.published));
    const width = Math.max(this.holder.clientWidth, 200);
    const [left, right, top, bottom] = [62, 10, 8, 50];
    const squeeze = Math.max(0.1, Math.cos((((box.south + box.north) / 2) * Math.PI) / 180));
    const room = Math.min(440, Math.max(220, width * 0.5)) - top - bottom;
    const scale = Math.min((width - left - right) / ((box.east - box.west) * squeeze), room / (box.north - box.south));
    // The frame fills the panel: degrees beyond the cells are shown where there is room.
    const middle = (box.west + box.east) / 2;
    const half = (width - left - right) / scale / squeeze / 2;
    box.west = middle - half;
    box.east = middle + half;
    const high = (box.north - box.south) * scale;
    const x = (east) => left + (east - box.west) * squeeze * scale;
    const y = (north) => top + (box.north - north) * scale;
    const parts = [draw("rect", { class: "land", x: left, y: top, width: width - left - right, height: high })];
    parts.push(...this.graticule(box, x, y, { left, right: width - right, top, bottom: top + high }));
    const most = this.places[0].density;
    const order = this.places.map((_, place) => place);
    if (this.chosen !== null) order.push(order.splice(this.chosen, 1)[0]);
    parts.push(...order.map((place) => this.cell(place, most, x, y)));
    parts.push(...this.ruler(scale, left, top + high + bottom - 6, (width - left - right) / 3));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${top + high + bottom}`);
    this.svg.setAttribute("height", top + high + bottom);
    this.svg.replaceChildren(...parts);
    this.tell();
  }

  graticule(box, x, y, frame) {
    const parts = [];
    const east = gridLines(box.west, box.east, Math.max(2, Math.floor((frame.right - frame.left) / 110)));
    for (const value of east.values) {
      parts.push(draw("line", { class: "rule", x1: x(value), x2: x(value), y1: frame.top, y2: frame.bottom }));
      if (x(value) > frame.left + 20 && x(value) < frame.right - 24) {
        parts.push(draw("text", { x: x(value), y: frame.bottom + 17, "text-anchor": "middle" }, degrees(value, "EW", east.digits)));
      }
    }
    const north = gridLines(box.south, box.north, 4);
    for (const value of north.values) {
      parts.push(draw("line", { class: "rule", x1: frame.left, x2: frame.right, y1: y(value), y2: y(value) }));
      parts.push(draw("text", { x: frame.left - 6, y: y(value) + 4, "text-anchor": "end" }, degrees(value, "NS", north.digits)));
    }
    return parts;
  }

  cell(place, most, x, y) {
    const { west, south, east, north, density } = this.places[place];
    const cell = draw("rect", {
      class: place === this.chosen ? "cell chosen" : "cell", x: x(west), y: y(north),
      width: Math.max(3, x(east) - x(west)), height: Math.max(3, y(south) - y(north)),
      "fill-opacity": (0.06 + 0.9 * Math.sqrt(density / most)).toFixed(2),
    });
    cell.addEventListener("pointerenter", () => this.choose(place));
    return cell;
  }

  ruler(scale, x, y, room) {
    const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
    const km = steps.findLast((length) => (length / KM_PER_DEGREE) * scale <= room) ?? steps[0];
    const long = (km / KM_PER_DEGREE) * scale;
    return [
      draw("path", { class: "axis", fill: "none", "stroke-width": 2, d: `M${x},${y - 5}v5h${long}v-5` }),
      draw("text", { class: "strong", x: x + long + 7, y: y + 2 }, km < 1 ? `${km * 1000} m` : `${number(km)} km`),
    ];
  }

  tell() {
    const rows = this.published.reduce((sum, place) => sum + place.count, 0);
    let words = `${number(rows)} recent rows in ${number(this.published.length)} published cells; darker is denser`;
    if (this.chosen !== null) {
      const { west, south, east, north, count } = this.places[this.chosen];
      const digits = Math.max(1, Math.ceil(-Math.log10(Math.max(1e-6, Math.min(east - west, north - south)))) + 1);
      words = `about ${number(Math.round(count))} rows in ${degrees(south, "NS", digits)} to ${degrees(north, "NS", digits)}, `
        + `${degrees(west, "EW", digits)} to ${degrees(east, "EW", digits)}`;
    }
    this.note.textContent = words;
    this.svg.setAttribute("aria-label", `Map of published places: ${words}. Arrow keys choose a cell.`);
  }
}
