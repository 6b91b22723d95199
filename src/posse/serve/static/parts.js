// The parts of the page, from what the service answers.
import { clock, count, effectsChart, el, number, percent, shareBar, signed, TimeChart } from "./charts.js";

const WORDS = { hour: "Hour", day: "Day", month: "Month" };
// So many points of a curve are drawn at most, and so many features of a task at first.
const POINTS = 60, FEATURES = 12;

const byId = (id) => document.getElementById(id);

// Put elements in a place; what had the focus keeps it, by its data-key.
function put(place, ...children) {
  const key = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  place.replaceChildren(...children.flat());
  if (key !== undefined) [...place.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key)?.focus();
}

// Decisions a second over the last rows of a history.
export function pace(rows) {
  const last = rows.at(-1), before = rows.findLast((row) => last && last.time - row.time > 8) ?? rows[0];
  return last && last.time > before.time ? (last.decisions - before.decisions) / (last.time - before.time) : null;
}

export function drawSpaces(spaces, status, chosen, choose) {
  const place = byId("spaces");
  place.hidden = spaces.length < 1;
  const cards = spaces.map(({ space }) => {
    const found = status.spaces[space.name];
    const alarms = found?.alarms.length ?? 0;
    const words = found ? [`${count(found.tasks)} tasks`, `${count(found.decisions)} decisions`] : ["not asked yet"];
    if (found?.lift !== null && found?.lift !== undefined) words.push(`${signed(found.lift)} over control`);
    return el(
      "button",
      { type: "button", "data-key": space.name, "aria-pressed": String(space.name === chosen), onclick: () => choose(space.name) },
      el("span", { class: "name" }, space.name, alarms ? el("span", { class: "badge" }, `${alarms} alarm${alarms > 1 ? "s" : ""}`) : ""),
      el("span", { class: "soft" }, words.join(" · ")),
    );
  });
  put(place, cards);
}

export function drawAlarms(alarms) {
  const place = byId("alarms");
  place.hidden = alarms.length === 0;
  put(place, alarms.map((text) => el("p", { class: "alarm" }, el("strong", {}, "Alarm "), text)));
}

function floorOf(space) {
  if (typeof space.floor === "number") return `every arm is played with a probability of ${percent(space.floor)} at least`;
  return `floors by arm: ${Object.entries(space.floor).map(([arm, least]) => `${arm} ${percent(least)}`).join(", ")}`;
}

export function drawNow(entry, found, rate) {
  const { space, version } = entry;
  byId("now-title").textContent = space.name;
  const about = [`policy ${space.policy}`, space.mode === "shadow" ? "in shadow mode" : floorOf(space)];
  if (space.control > 0) about.push(`${percent(space.control)} of the units are held back`);
  if (version > 1) about.push(`version ${version} of the space`);
  if (found?.frozen) about.push("frozen: it does not learn");
  byId("about").textContent = `${about.join("; ")}.`;
  const tile = (name, value, more = "", look = "") =>
    el("div", {}, el("dt", {}, name), el("dd", { class: look }, value), el("dd", {}, more));
  if (!found) return put(byId("tiles"), tile("decisions", "0", "not asked yet"));
  const mean = found.counted ? found.reward_total / found.counted : null;
  const tiles = [
    tile("tasks", count(found.tasks)),
    tile("decisions", count(found.decisions), rate === null ? "" : `${number(rate)} a second`),
    tile("rewards", count(found.rewards), found.decisions ? `${percent(found.rewards / found.decisions)} of decisions` : ""),
    tile("mean reward", number(mean), found.control_reward === null ? "" : `control ${number(found.control_reward)}`),
  ];
  if (found.lift !== null) {
    const look = found.lift_low > 0 ? "good" : found.lift_high < 0 ? "bad" : "";
    tiles.push(tile("over the control", signed(found.lift), `95 %: ${signed(found.lift_low)} to ${signed(found.lift_high)}`, look));
  }
  tiles.push(tile("exploration", found.entropy === null ? "–" : percent(found.entropy), "entropy, 100 % at random"));
  if (found.match_rate !== null) tiles.push(tile("decided as played", percent(found.match_rate), `mean reward there ${number(found.reward_matched)}`));
  tiles.push(tile("live version", String(found.version), found.refitting ? "a refit is under way" : found.automatic ? "refits are adopted" : "kept until one is promoted"));
  put(byId("tiles"), tiles);
}

// The four curves; `draw` takes rows of a history by name.
export class Curves {
  constructor() {
    this.traffic = new TimeChart("Traffic", (value) => `${number(value)}/s`);
    this.reward = new TimeChart("Mean reward");
    this.lift = new TimeChart("Reward over the control", signed);
    this.entropy = new TimeChart("Exploration", percent);
    byId("charts").append(...[this.traffic, this.reward, this.lift, this.entropy].map((chart) => chart.figure));
  }

  draw(rows, space, found) {
    const points = thin(rows);
    const between = (value) => points.slice(1).map((row, place) => [row.time, value(row, points[place])]);
    const rate = (name) => between((row, before) => Math.max(row[name] - before[name], 0) / (row.time - before.time));
    this.traffic.draw({ zero: true, series: [{ name: "decisions", points: rate("decisions") }, { name: "rewards", look: "two", points: rate("rewards") }] });
    const mean = between((row, before) => (row.counted > before.counted ? (row.reward_total - before.reward_total) / (row.counted - before.counted) : null));
    const series = [{ name: "by the time it came", look: "two", points: mean }];
    if (typeof found?.control_reward === "number") series.push({ name: "control, in all", look: "rest", points: mean.map(([time]) => [time, found.control_reward]) });
    this.reward.draw({ series });
    // The first intervals are so wide that no later one could be seen beside them.
    const lifts = points.filter((row) => row.lift !== null), width = (row) => row.lift_high - row.lift_low;
    const known = lifts.filter((row) => width(row) <= 8 * width(lifts.at(-1)));
    this.lift.draw({
      zero: true,
      empty: space.control > 0 ? "Both groups need rewards of two units" : "This space has no control group",
      note: known.length ? `All rewards so far, with a 95 % interval${known.length < lifts.length ? "; the first, much wider ones are left out" : ""}` : "",
      series: [{ name: "difference of means", look: "three", points: known.map((row) => [row.time, row.lift]), band: known.map((row) => [row.time, row.lift_low, row.lift_high]) }],
    });
    this.entropy.draw({ zero: true, top: 1, note: "Entropy of late choices; 100 % is at random", series: [{ name: "entropy", points: points.filter((row) => row.entropy !== null).map((row) => [row.time, row.entropy]) }] });
  }
}

// Rows at equal distances in time, at most as many as are drawn.
function thin(rows) {
  if (rows.length <= POINTS) return rows;
  const size = Math.ceil(rows.length / POINTS);
  const step = ((rows.at(-1).time - rows[0].time) / (rows.length - 1)) * size;
  const width = 2 ** Math.ceil(Math.log2(step)); // so that edges stay where they are while new rows come
  return rows.filter((row, place) => place === 0 || Math.floor(row.time / width) !== Math.floor(rows[place - 1].time / width));
}

export function drawWindows(names, chosen, choose) {
  put(byId("windows"), names.map((name) => el("button", { type: "button", "data-key": name, "aria-pressed": String(name === chosen), onclick: () => choose(name) }, WORDS[name] ?? name)));
}

export function drawMissing(space, found) {
  const missing = found.expired - found.defaults;
  const parts = [
    { name: "rewarded", value: found.rewards, look: "two" },
    { name: "still waited for", value: found.pending, look: "one" },
    { name: "counted with the default", value: found.defaults, look: "rest" },
    { name: "never rewarded", value: Math.max(found.decisions - found.rewards - found.pending - found.defaults, 0), look: "three" },
  ].filter((part) => part.value > 0 || part.look !== "rest");
  const wait = space.reward_wait === null ? "Rewards are waited for without end" : `Rewards count within ${duration(space.reward_wait)}`;
  const words = `${wait}. ${count(found.late)} came too late; ${count(Math.max(missing, 0))} decisions expired without one.`;
  put(byId("missing"), shareBar(parts, "Decisions"), el("p", { class: "soft" }, words));
}

function duration(seconds) {
  const units = [[86400, "days"], [3600, "hours"], [60, "minutes"]];
  const [size, name] = units.find(([size]) => seconds >= 2 * size) ?? [1, "seconds"];
  return `${number(seconds / size)} ${name}`;
}

export function drawTasks(answer, chosen, choose) {
  const items = answer.tasks.map(({ name, rewards }) =>
    el(
      "li",
      {},
      el(
        "button",
        { type: "button", "data-key": name, title: name, "aria-pressed": String(name === chosen), onclick: () => choose(name) },
        el("span", {}, name),
        el("span", {}, count(rewards)),
      ),
    ),
  );
  const place = byId("tasks"), top = place.scrollTop;
  put(place, items);
  place.scrollTop = top;
  byId("count").textContent = `${count(answer.tasks.length)} of ${count(answer.total)} tasks, those with the most rewards.`;
}

export function drawTask(found, all, choose, showAll) {
  const place = byId("task");
  if (!found) return put(place, el("p", { class: "soft" }, "Choose a task to see what it learned, and from whom."));
  const sorted = found.effects.toSorted((a, b) => Math.abs(b.estimate) - Math.abs(a.estimate));
  const shown = all ? found.effects : found.effects.length > FEATURES ? sorted.slice(0, FEATURES) : found.effects;
  const figure = el(
    "figure",
    {},
    el(
      "figcaption",
      {},
      el("h3", {}, found.task),
      el("span", { class: "key" }, el("i", { class: "one" }), "this task"),
      el("span", { class: "key" }, el("i", { class: "box rest" }), "what the others say of a new task"),
      el("p", { class: "soft" }, `Learned from ${count(found.rewards)} rewards of its own, and from the others. 95 % intervals.`),
    ),
  );
  const more = found.effects.length > FEATURES
    ? [el("p", {}, el("button", { type: "button", "data-key": "all", onclick: showAll }, all ? `The ${FEATURES} largest` : `All ${found.effects.length} features`))]
    : [];
  const alike = found.alike.map(({ name, likeness }) =>
    el("li", {}, el("button", { type: "button", "data-key": `alike ${name}`, title: name, onclick: () => choose(name) }, name, el("span", { class: "soft" }, likeness.toFixed(2)))),
  );
  const near = alike.length ? [el("h3", {}, "Most like it"), el("ul", { class: "alike" }, alike), el("p", { class: "soft" }, "Whether tasks differ from the mean of all in the same direction: 1 is just so, 0 not at all, −1 the other way.")] : [];
  put(place, figure, more, near);
  figure.append(effectsChart(shown, Math.max(figure.clientWidth - 30, 240)));
}

export function drawVersions(answer, admin, rollBack, promote) {
  byId("adopted").textContent = answer.automatic
    ? "Refits are adopted by themselves."
    : `It keeps to version ${answer.version}: refits are adopted once a version is promoted.`;
  const rows = answer.versions.toReversed().slice(0, 12).map((one) => {
    const live = one.number === answer.version;
    const back = el("button", { type: "button", "data-key": `back ${one.number}`, onclick: () => rollBack(one.number) }, "Roll back", el("span", { class: "which" }, ` to ${one.number}`));
    const on = el("button", { type: "button", "data-key": `on ${one.number}`, onclick: () => promote(one.number) }, "Promote", el("span", { class: "which" }, ` ${one.number}`));
    const does = !admin ? [] : live ? (answer.automatic ? [] : [on]) : one.number < answer.version ? [back] : [on];
    return el(
      "tr",
      { class: live ? "live" : null },
      el("td", {}, live ? `${one.number}, live` : String(one.number)),
      el("td", { class: "words" }, { prior: "the beginning", model: "a fitted model", refit: "refit" }[one.source] ?? one.source),
      el("td", {}, count(one.rows)),
      el("td", { class: "when" }, one.at ? clock(one.at) : "–"),
      el("td", {}, does),
    );
  });
  const head = ["version", "from", "rewards", "since", ""].map((name, place) => el("th", { class: { 1: "words", 3: "when" }[place], scope: "col" }, name || el("span", { class: "skip" }, "actions")));
  put(byId("versions"), el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}
