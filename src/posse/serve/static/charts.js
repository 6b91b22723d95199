// Pictures as inline SVG, and what they are made of. Whatever is text becomes a text node: names are never markup.
const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const exact = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const count = (value) => (Math.abs(value) < 1e6 ? whole : short).format(value);
export const number = (value) => (value === null || Number.isNaN(value) ? "–" : Math.abs(value) >= 1e5 ? short.format(value) : exact.format(value));
export const signed = (value) => (value > 0 ? "+" : "") + number(value);
export const percent = (value) => `${whole.format(100 * value)} %`;
export const clock = (seconds, span = 0) =>
  span > 2 * 86400
    ? new Date(1000 * seconds).toLocaleDateString([], { day: "numeric", month: "short" })
    : new Date(1000 * seconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: span > 3600 ? undefined : "2-digit", hour12: false });

// Return some three to five round numbers that cover what lies between two.
export function ticks(low, high, most = 4) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const found = [];
  for (let at = Math.floor(low / step + 1e-9); at * step < high + 0.999 * step; at++) found.push(at * step);
  return found;
}

// A chart of lines over time. `draw` takes {label, series, zero, top}: series have a name, a class, points [t, value],
// and perhaps a band [t, low, high]. The pointer, or the arrow keys, read values off.
export class TimeChart {
  constructor(title, format = number) {
    this.title = title;
    this.format = format;
    this.keys = el("span");
    this.note = el("p", { class: "soft" });
    this.reading = el("p", { class: "reading", "aria-live": "off" });
    this.plot = svg("svg", { role: "img", tabindex: "0" });
    this.figure = el("figure", {}, el("figcaption", {}, el("h3", {}, title), this.keys, this.note), this.reading, this.plot);
    this.at = null;
    this.data = null;
    this.plot.addEventListener("pointermove", (event) => this.point(event));
    this.plot.addEventListener("pointerleave", () => this.read(null));
    this.plot.addEventListener("keydown", (event) => this.step(event));
    this.plot.addEventListener("blur", () => this.read(null));
    new ResizeObserver(() => this.data && this.paint()).observe(this.figure);
  }

  draw(data) {
    this.data = data;
    this.note.textContent = data.note ?? "";
    this.keys.replaceChildren(
      ...data.series.map((one) => el("span", { class: "key" }, el("i", { class: one.look ?? "one" }), `${one.name} `)),
    );
    this.paint();
  }

  paint() {
    const { series, zero, top } = this.data;
    const wide = Math.max(this.figure.clientWidth - 30, 200), high = 170;
    const edge = { left: 46, right: 10, top: 8, bottom: 24 };
    const values = series.flatMap((one) => [...one.points.map((point) => point[1]), ...(one.band ?? []).flatMap((part) => part.slice(1))]).filter((value) => value !== null);
    this.plot.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    this.plot.setAttribute("height", high);
    this.times = [...new Set(series.flatMap((one) => one.points.map((point) => point[0])))].sort((a, b) => a - b);
    if (values.length === 0 || this.times.length < 2) {
      this.plot.setAttribute("aria-label", `${this.title}: nothing yet`);
      this.plot.replaceChildren(svg("text", { x: wide / 2, y: high / 2, "text-anchor": "middle" }, this.data.empty ?? "Nothing yet"));
      this.x = null;
      return;
    }
    const low = Math.min(...values, ...(zero ? [0] : [])), most = Math.max(...values, ...(zero ? [0] : []), ...(top ? [top] : []));
    const marks = ticks(low, most > low ? most : low + (Math.abs(low) || 1));
    const [first, last] = [this.times[0], this.times.at(-1)];
    this.x = (time) => edge.left + ((time - first) / (last - first)) * (wide - edge.left - edge.right);
    this.y = (value) => high - edge.bottom - ((value - marks[0]) / (marks.at(-1) - marks[0])) * (high - edge.top - edge.bottom);
    const parts = marks.map((mark) => [
      svg("line", { class: mark === 0 ? "zero" : "grid", x1: edge.left, x2: wide - edge.right, y1: this.y(mark), y2: this.y(mark) }),
      svg("text", { x: edge.left - 6, y: this.y(mark) + 4, "text-anchor": "end" }, number(Math.abs(mark) < 1e-12 ? 0 : mark)),
    ]);
    const some = Math.max(2, Math.min(5, Math.floor(wide / 110)));
    for (let place = 0; place < some; place++) {
      const time = first + ((last - first) * place) / (some - 1);
      const anchor = place === 0 ? "start" : place === some - 1 ? "end" : "middle";
      parts.push(svg("text", { x: this.x(time), y: high - 6, "text-anchor": anchor }, clock(time, last - first)));
    }
    for (const one of series) {
      if (one.band?.length > 1) parts.push(svg("path", { class: `band ${one.look ?? ""}`, d: this.around(one.band) }));
      parts.push(svg("path", { class: `line ${one.look ?? ""}`, d: this.along(one.points) }));
    }
    this.marks = svg("g");
    this.plot.replaceChildren(...parts.flat(), this.marks);
    const latest = series.map((one) => `${one.name} ${this.format(one.points.findLast((point) => point[1] !== null)?.[1] ?? null)}`);
    this.plot.setAttribute("aria-label", `${this.title}, last: ${latest.join(", ")}. Arrow keys read earlier values.`);
    this.edge = edge;
    this.read(this.at);
  }

  along(points) {
    let path = "", pen = "M";
    for (const [time, value] of points) {
      if (value === null) pen = "M";
      else {
        path += `${pen}${this.x(time).toFixed(1)},${this.y(value).toFixed(1)}`;
        pen = "L";
      }
    }
    return path;
  }

  around(band) {
    const side = (part, place) => `${this.x(part[0]).toFixed(1)},${this.y(part[place]).toFixed(1)}`;
    return `M${[...band.map((part) => side(part, 2)), ...band.toReversed().map((part) => side(part, 1))].join("L")}Z`;
  }

  point(event) {
    if (!this.x) return;
    const box = this.plot.getBoundingClientRect();
    const at = event.clientX - box.left;
    this.read(this.times.reduce((best, time) => (Math.abs(this.x(time) - at) < Math.abs(this.x(best) - at) ? time : best)));
  }

  step(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (!this.x || !(event.key in moves)) return;
    event.preventDefault();
    this.reading.setAttribute("aria-live", "polite");
    const now = this.at === null ? this.times.length - 1 : this.times.indexOf(this.at) + moves[event.key];
    this.read(this.times[Math.min(Math.max(now, 0), this.times.length - 1)]);
  }

  read(time) {
    this.at = time !== null && this.times?.includes(time) ? time : null;
    this.reading.textContent = "";
    this.marks?.replaceChildren();
    if (this.at === null || !this.x) return;
    const found = this.data.series.map((one) => [one, one.points.find((point) => point[0] === this.at)?.[1] ?? null]).filter(([, value]) => value !== null);
    const words = found.map(([one, value]) => {
      const part = one.band?.find((row) => row[0] === this.at);
      return `${one.name} ${this.format(value)}${part ? ` [${this.format(part[1])}, ${this.format(part[2])}]` : ""}`;
    });
    this.reading.textContent = [clock(this.at, this.times.at(-1) - this.times[0]), ...words].join(" · ");
    const x = this.x(this.at);
    this.marks.replaceChildren(
      svg("line", { class: "cross", x1: x, x2: x, y1: this.edge.top, y2: 170 - this.edge.bottom }),
      ...found.map(([one, value]) => svg("circle", { class: `dot ${one.look ?? ""}`, cx: x, cy: this.y(value), r: 4 })),
    );
  }
}

// One bar of several parts, [{name, value, look}], with a key beneath.
export function shareBar(parts, label) {
  const total = parts.reduce((sum, part) => sum + part.value, 0);
  let left = 0;
  const boxes = parts.map((part) => {
    const wide = total ? (100 * part.value) / total : 0;
    left += wide;
    return svg("rect", { class: `part ${part.look}`, x: `${left - wide}%`, y: 0, width: `${wide}%`, height: 18 });
  });
  const words = parts.map((part) => `${part.name} ${count(part.value)}${total ? ` (${percent(part.value / total)})` : ""}`);
  return el(
    "figure",
    {},
    svg("svg", { role: "img", height: 18, "aria-label": `${label}: ${words.join(", ")}` }, svg("rect", { class: "track", width: "100%", height: 18 }), boxes),
    el("figcaption", {}, words.map((text, place) => el("span", { class: "key" }, el("i", { class: `box ${parts[place].look}` }), text))),
  );
}

// What is believed of a task, by feature: its own estimate and interval over what is expected of any new task, and how
// much of what there was to learn its own rewards have told.
export function effectsChart(effects, wide) {
  const row = 34, head = 26, half = 1.96;
  const names = Math.min(170, Math.max(90, wide * 0.28)), bars = Math.min(110, Math.max(64, wide * 0.18));
  const ends = effects.flatMap((one) => [one.estimate - half * one.deviation, one.estimate + half * one.deviation, one.others - half * one.others_deviation, one.others + half * one.others_deviation]);
  const marks = ticks(Math.min(0, ...ends), Math.max(0, ...ends), wide < 500 ? 3 : 5);
  const left = names + 10, right = wide - bars - 20, high = head + row * effects.length + 24;
  const x = (value) => left + ((value - marks[0]) / (marks.at(-1) - marks[0])) * (right - left);
  const parts = marks.flatMap((mark) => [
    svg("line", { class: Math.abs(mark) < 1e-12 ? "zero" : "grid", x1: x(mark), x2: x(mark), y1: head - 6, y2: high - 22 }),
    svg("text", { x: x(mark), y: high - 6, "text-anchor": "middle" }, number(Math.abs(mark) < 1e-12 ? 0 : mark)),
  ]);
  parts.push(svg("text", { x: left, y: 12 }, "effect on the reward"), svg("text", { x: wide, y: 12, "text-anchor": "end" }, wide < 500 ? "from own" : "from own rewards"));
  effects.forEach((one, place) => {
    const y = head + row * place + row / 2;
    const letters = Math.floor(names / 7.2);
    const words = one.feature.length > letters ? `${one.feature.slice(0, letters - 1)}…` : one.feature;
    parts.push(
      svg("text", { class: "ink", x: 0, y: y + 4 }, words, svg("title", {}, one.feature)),
      svg("line", { class: "others", x1: x(one.others - half * one.others_deviation), x2: x(one.others + half * one.others_deviation), y1: y, y2: y }),
      svg("line", { class: "centre", x1: x(one.others), x2: x(one.others), y1: y - 7, y2: y + 7 }),
      svg("line", { class: "own", x1: x(one.estimate - half * one.deviation), x2: x(one.estimate + half * one.deviation), y1: y, y2: y }),
      svg("circle", { class: "dot", cx: x(one.estimate), cy: y, r: 5 }),
      svg("rect", { class: "track", x: wide - bars, y: y - 5, width: bars - 42, height: 10, rx: 2 }),
      svg("rect", { class: "part", x: wide - bars, y: y - 5, width: (bars - 42) * one.weight, height: 10, rx: 2 }),
      svg("text", { x: wide, y: y + 4, "text-anchor": "end" }, percent(one.weight)),
    );
  });
  const words = effects.map((one) => `${one.feature} ${number(one.estimate)}, expected of a new task ${number(one.others)}`);
  return svg("svg", { role: "img", viewBox: `0 0 ${wide} ${high}`, height: high, "aria-label": `Effects: ${words.join("; ")}` }, parts);
}
