// The stream of snapshots: connect, notice a loss, try again, and catch up without gaps or doubled points.

const SECONDS = 600;
const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15000;

/**
 * Calls `onChange(state)` with {kind: "live" | "lost" | "refused", wait: milliseconds until the next attempt},
 * `onSnapshot(snapshot, points)` and `onWhatIf(result)`. Points are the series of the last ten minutes by time.
 */
export class Connection {
  constructor({ onChange, onSnapshot, onWhatIf }) {
    Object.assign(this, { onChange, onSnapshot, onWhatIf, points: new Map(), latest: null, attempts: 0, timer: 0 });
  }

  start() {
    clearTimeout(this.timer);
    this.source?.close();
    const source = new EventSource("/api/stream");
    this.source = source;
    source.addEventListener("open", () => this.opened(source));
    source.addEventListener("error", () => this.failed(source));
    source.addEventListener("state", (event) => this.received(JSON.parse(event.data)));
    source.addEventListener("whatif", (event) => this.onWhatIf(JSON.parse(event.data)));
  }

  // History is read after the stream is open: what happens in between arrives twice and counts once.
  async opened(source) {
    try {
      const answer = await fetch("/api/history", { cache: "no-store" });
      if (!answer.ok) throw new Error("no history");
      const history = await answer.json();
      if (source !== this.source) return;
      history.forEach((series) => this.points.set(series.t, series));
    } catch {
      if (source === this.source) this.failed(source);
      return;
    }
    this.attempts = 0;
    this.onChange({ kind: "live" });
    if (this.latest) this.onSnapshot(this.latest, this.series());
  }

  received(snapshot) {
    if (!snapshot) return; // the run has not begun yet
    const older = this.latest && this.latest.run.started === snapshot.run.started && snapshot.number < this.latest.number;
    if (older) return;
    this.latest = snapshot;
    this.points.set(snapshot.series.t, snapshot.series);
    this.onSnapshot(snapshot, this.series());
  }

  series() {
    const newest = Math.max(...this.points.keys());
    for (const time of this.points.keys()) if (time <= newest - SECONDS) this.points.delete(time);
    return [...this.points.values()].sort((one, other) => one.t - other.t);
  }

  // EventSource gives up on some errors and never says why, so the attempts are made here.
  async failed(source) {
    if (source !== this.source) return;
    source.close();
    this.source = null;
    const refused = await fetch("/api/state", { cache: "no-store" }).then((answer) => answer.status === 403, () => false);
    if (this.source) return;
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.attempts) * (0.75 + Math.random() / 2);
    this.attempts += 1;
    this.onChange({ kind: refused ? "refused" : "lost", wait });
    this.timer = setTimeout(() => this.start(), wait);
  }
}
