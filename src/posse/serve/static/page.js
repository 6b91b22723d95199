// The page to watch: asks the service every few seconds, and draws what it answers.
import { call, Refused, token } from "./calls.js";
import { clock } from "./charts.js";
import { Curves, drawAlarms, drawMissing, drawNow, drawSpaces, drawTask, drawTasks, drawVersions, drawWindows, pace } from "./parts.js";

const EVERY = 2000, LISTED = 100;
const byId = (id) => document.getElementById(id);
const state = { space: null, task: null, window: "hour", all: false, spaces: [], status: null, rows: {} };
let curves = null, drawn = {}, turn = 0;

// What is being looked at stands in the address, so that it can be sent to somebody.
function readAddress() {
  const found = new URLSearchParams(location.hash.slice(1));
  state.space = found.get("space");
  state.task = found.get("task");
}

function writeAddress() {
  const found = new URLSearchParams();
  if (state.space) found.set("space", state.space);
  if (state.task) found.set("task", state.task);
  history.replaceState(null, "", `#${found}`);
}

// Call a drawing only if what it draws has changed: what somebody reads or types is left alone.
function when(name, data, draw) {
  const text = JSON.stringify(data);
  if (drawn[name] === text) return;
  drawn[name] = text;
  draw();
}

const within = (path, more = {}) => `${path}?${new URLSearchParams({ space: state.space, ...more })}`;

async function refresh() {
  const now = ++turn;
  const [status, { spaces }] = await Promise.all([call("/v1/status"), call("/v1/spaces")]);
  if (now !== turn) return;
  Object.assign(state, { status, spaces });
  if (!spaces.some(({ space }) => space.name === state.space)) {
    state.space = spaces.toSorted((a, b) => (status.spaces[b.space.name]?.decisions ?? 0) - (status.spaces[a.space.name]?.decisions ?? 0))[0]?.space.name ?? null;
    state.task = null;
  }
  byId("empty").hidden = spaces.length > 0;
  byId("space").hidden = spaces.length === 0;
  drawAlarmsAndSpaces();
  if (state.space) await refreshSpace(now);
  byId("leave").hidden = !token.get();
  pulse("live", `Live, ${clock(Date.now() / 1000)}`);
  if (!performance.getEntriesByName("posse-useful").length) performance.mark("posse-useful");
}

function drawAlarmsAndSpaces() {
  const { status, spaces } = state;
  when("alarms", status.alarms, () => drawAlarms(status.alarms));
  when("spaces", [spaces, status.spaces, state.space], () => drawSpaces(spaces, status, state.space, chooseSpace));
}

async function refreshSpace(now) {
  const entry = state.spaces.find(({ space }) => space.name === state.space);
  const found = state.status.spaces[state.space];
  const asked = found
    ? [call(within("/v1/traffic")), call(within("/v1/versions")), call(within("/v1/tasks", { most: LISTED, ...(byId("find").value ? { find: byId("find").value } : {}) })), taskAnswer()]
    : [];
  const [traffic, versions, tasks, task] = await Promise.all(asked);
  if (now !== turn) return;
  document.title = `${state.space} · posse`;
  const windows = traffic?.windows ?? {};
  const rows = (windows[state.window] ?? []).map((row) => Object.fromEntries(traffic.columns.map((name, place) => [name, row[place]])));
  const recent = (windows.hour ?? []).map((row) => Object.fromEntries(traffic.columns.map((name, place) => [name, row[place]])));
  drawNow(entry, found, pace(recent));
  curves ??= new Curves();
  if (traffic) drawWindows(Object.keys(windows), state.window, chooseWindow);
  curves.draw(rows, entry.space, found);
  for (const id of ["missing", "task", "versions", "tasks"]) byId(id).hidden = !found;
  if (!found) return;
  when("missing", [state.space, found], () => drawMissing(entry.space, found));
  when("tasks", [state.space, tasks, state.task], () => drawTasks(tasks, state.task, chooseTask));
  when("task", [state.space, task, state.all], () => drawTask(task, state.all, chooseTask, toggleAll));
  const admin = state.status.roles.includes("admin");
  when("versions", [state.space, versions, admin], () => drawVersions(versions, admin, rollBack, promote));
}

// The first task of a space is shown until another one is chosen; one that is not there any more is let go.
async function taskAnswer() {
  if (!state.task) {
    const { tasks } = await call(within("/v1/tasks", { most: 1 }));
    if (tasks.length === 0) return null;
    state.task = tasks[0].name;
  }
  try {
    return await call(within(`/v1/tasks/${encodeURIComponent(state.task)}`));
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    state.task = null;
    return null;
  }
}

function chooseSpace(name) {
  Object.assign(state, { space: name, task: null, all: false });
  byId("find").value = "";
  again();
}

function chooseTask(name) {
  Object.assign(state, { task: name, all: false });
  again();
}

function chooseWindow(name) {
  state.window = name;
  again();
}

function toggleAll() {
  state.all = !state.all;
  again();
}

function again() {
  writeAddress();
  if (state.status) drawAlarmsAndSpaces();
  update();
}

function pulse(look, words) {
  const place = byId("pulse");
  place.className = `pulse ${look}`;
  if (place.textContent !== words) place.textContent = words;
  document.body.classList.toggle("stale", look === "lost");
}

function say(words) {
  byId("message").hidden = !words;
  byId("message").textContent = words;
}

// Refresh, and say so if that did not work.
async function update() {
  try {
    await refresh();
  } catch (error) {
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) askToken(error);
    else pulse("lost", `No answer: ${error.message}`);
  }
}

async function watch() {
  if (!document.hidden && !byId("ask-token").open) await update();
  setTimeout(watch, EVERY);
}

function askToken(error) {
  byId("token-wrong").textContent = token.get() ? error.message : "";
  token.drop();
  pulse("", "Waits for a token");
  if (!byId("ask-token").open) byId("ask-token").showModal();
}

byId("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  token.set(byId("token").value.trim());
  byId("token").value = "";
  byId("ask-token").close();
  await update();
});

byId("leave").addEventListener("click", () => {
  token.drop();
  location.reload();
});

// Ask before something is done that decisions depend on.
function confirmed(title, text, button) {
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = button;
  const dialog = byId("confirm");
  return new Promise((done) => {
    byId("confirm-yes").onclick = () => dialog.close("yes");
    byId("confirm-no").onclick = () => dialog.close("no");
    dialog.onclose = () => done(dialog.returnValue === "yes");
    dialog.returnValue = "no";
    dialog.showModal();
  });
}

async function turnTo(path, version, title, text, button, done) {
  const space = state.space;
  if (!(await confirmed(title, text, button))) return;
  try {
    await call(path, { version, space });
    say(done);
  } catch (error) {
    say(`Not done: ${error.message}`);
  }
  await update();
}

const rollBack = (version) =>
  turnTo("/v1/rollback", version, `Roll back to version ${version}?`, `Space ${state.space} decides by it from now on, and adopts no refit until a version is promoted. No reward is lost.`, "Roll back", `Rolled back to version ${version}.`);
const promote = (version) =>
  turnTo("/v1/promote", version, `Promote version ${version}?`, `Space ${state.space} decides by it from now on, and adopts refits as its settings say.`, "Promote", `Version ${version} was promoted.`);

let typing = 0;
byId("find").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(update, 200);
});
window.addEventListener("hashchange", () => {
  readAddress();
  update();
});
document.addEventListener("visibilitychange", () => document.hidden || update());
window.addEventListener("resize", () => {
  delete drawn.task;
});

byId("first").textContent = `curl ${location.origin}/v1/ask -H 'Content-Type: application/json' \\\n  -d '{"task": "shop-17", "arms": {"red": {"price": 1.2, "new": 0}, "blue": {"price": 0.9, "new": 1}}}'`;
readAddress();
watch();
