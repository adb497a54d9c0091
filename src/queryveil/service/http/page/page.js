"use strict";
// Asks /stats every second and shows what it says.

const SPAN = 120;
const WHY = {
  n_repeated: "Asked before by the same user",
  n_rare: "Asked by too few people",
  n_suppressed: "Pool full, or the promise could not be kept",
  n_emptied: "Nothing but identifiers",
  n_empty: "Empty query",
  n_unclassified_dropped: "No category",
  n_bad: "Line not readable",
};
const at = (id) => document.getElementById(id);
let seen = [];
let hasExample = false;
let headers = {};
let wasAsked = false;

function show(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text;
}

function sum(counts) {
  return Object.values(counts).reduce((all, n) => all + n, 0);
}

function showStatus(text, state) {
  show("status", text);
  at("status").className = `status ${state}`;
}

function remember(stats) {
  const last = seen.at(-1);
  if (last && (stats.uptime_seconds < last.at || stats.n_read < last.n_read)) seen = [];
  if (last && stats.uptime_seconds === last.at) return;
  seen.push({ at: stats.uptime_seconds, n_read: stats.n_read, n_released: stats.n_released });
  seen = seen.filter((each) => each.at >= stats.uptime_seconds - SPAN - 2);
}

function rates() {
  const now = seen.at(-1)?.at ?? 0;
  return seen.slice(1).map((each, i) => {
    const before = seen[i], seconds = each.at - before.at;
    return {
      ago: Math.min(SPAN, now - each.at),
      read: (each.n_read - before.n_read) / seconds,
      released: (each.n_released - before.n_released) / seconds,
    };
  });
}

function showRates() {
  const points = rates(), last = points.at(-1);
  drawRates(at("rate"), points, SPAN);
  if (!last) return;
  show("rate_read", count(last.read));
  show("rate_released", count(last.released));
  const most = Math.max(...points.map((point) => point.read));
  at("rate").setAttribute("aria-label", `Events a second over the last two minutes: now ${count(last.read)} read and ` +
    `${count(last.released)} released, at most ${count(most)} read`);
  const rows = points.slice(-10).reverse();
  fillTable(at("rate-table"), rows.map((point) => (
    { name: point.ago.toFixed(0), cells: [count(point.read), count(point.released)] })));
}

function showTiles(stats) {
  for (const name of ["n_read", "n_released", "n_waiting", "n_outbox_rows"]) show(name, count(stats[name]));
  show("n_left_out", count(Object.keys(WHY).reduce((all, name) => all + stats[name], 0)));
  show("n_identifiers", count(sum(stats.identifiers)));
}

function showPools(stats, promise) {
  show("pools-note", `A query leaves when its pool holds k events (the mark) of at least ${promise.l} people (l). ` +
    "Where one person alone is waiting, k grows.");
  const most = Math.max(1, ...Object.values(stats.k_now), ...Object.values(stats.waiting));
  fillTable(at("pools"), Object.keys(stats.k_now).map((name) => {
    const waiting = stats.waiting[name] ?? 0, needed = stats.k_now[name];
    const label = `${name}: ${waiting} waiting, ${needed} needed`;
    return { name, share: waiting / most, mark: needed / most, label, cells: [count(waiting), count(needed)],
      isNone: waiting === 0 };
  }));
}

function showMix(stats) {
  const all = sum(stats.released), most = Math.max(1, ...Object.values(stats.released));
  fillTable(at("mix"), Object.keys(stats.k_now).map((name) => {
    const n = stats.released[name] ?? 0, share = all ? n / all : 0;
    return { name, share: n / most, label: `${name}: ${percent(share)}`, cells: [count(n), percent(share)],
      isNone: n === 0 };
  }));
}

function showLeftOut(stats) {
  fillTable(at("left"), Object.entries(WHY).map(([name, why]) => (
    { name: why, cells: [count(stats[name])], isNone: stats[name] === 0 })));
  const kinds = Object.entries(stats.identifiers).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  const most = Math.max(1, ...kinds.map(([, n]) => n));
  fillTable(at("kinds"), kinds.map(([kind, n]) => (
    { name: kind.replaceAll("_", " "), share: n / most, label: `${kind}: ${n}`, cells: [count(n)] })));
  at("kinds").hidden = kinds.length === 0;
  at("kinds-none").hidden = kinds.length > 0;
}

function showService(stats) {
  const n = stats.n_batches;
  show("ready", stats.is_ready ? "yes" : "no");
  show("n_delivered", count(stats.n_delivered));
  show("outbox", bytes(stats.n_outbox_bytes));
  show("n_batches", count(n));
  show("latency", n ? `${duration(stats.latency.seconds / n)} (mean)` : "–");
  show("uptime", duration(stats.uptime_seconds));
}

function showPerson(person, parent) {
  const box = make("div", { parent });
  make("h3", { text: person.name, parent: box });
  const table = make("table", { parent: box });
  const head = make("tr", { parent: make("thead", { parent: table }) });
  for (const [text, className] of [["Category", ""], ["Shares", "unseen"], ["before", "n was"], ["after", "n is"]]) {
    const cell = make("th", { className, scope: "col", parent: head });
    make("span", { text, className: className === "unseen" ? "hidden" : "", parent: cell });
  }
  const body = make("tbody", { parent: table });
  for (const name of new Set([...Object.keys(person.before.shares), ...Object.keys(person.after.shares)])) {
    const before = person.before.shares[name] ?? 0, after = person.after.shares[name] ?? 0;
    const row = make("tr", { parent: body });
    make("th", { text: name, scope: "row", parent: row });
    const cell = make("td", { className: "bar", parent: row });
    cell.append(bar(before, { label: `${name} before: ${percent(before)}` }));
    cell.append(bar(after, { label: `${name} after: ${percent(after)}`, className: "is-after" }));
    make("td", { text: percent(before), className: "n", parent: row });
    make("td", { text: percent(after), className: "n", parent: row });
  }
  const own = make("tr", { parent: make("tfoot", { parent: table }) });
  make("th", { text: "Own queries", scope: "row", colspan: "2", parent: own });
  for (const side of [person.before, person.after]) {
    make("td", { text: `${side.n_own} of ${side.n_queries}`, className: "n", parent: own });
  }
}

async function showExample() {
  const answer = await fetch("example", { headers });
  if (!answer.ok) return;
  const { k, l, n_people: people, people: shown } = await answer.json();
  hasExample = true;
  show("example-note", `${people} made-up people, k ${k} and l ${l}: each keeps the mix of categories, none keeps a ` +
    "query of their own. Queries that are missing afterwards still wait in a pool.");
  at("example").replaceChildren();
  for (const person of shown) showPerson(person, at("example"));
}

function showAll({ promise, stats }) {
  if (promise) show("promise", promise.in_words);
  showStatus(stats.is_ready ? "Ready" : `Not ready: ${stats.why_not}`, stats.is_ready ? "is-ready" : "is-not");
  at("hint").hidden = stats.n_read > 0;
  remember(stats);
  showRates();
  showTiles(stats);
  if (promise) showPools(stats, promise);
  showMix(stats);
  showLeftOut(stats);
  showService(stats);
}

function askForToken() {
  const token = wasAsked ? null : prompt("The counts of this service need its token:");
  wasAsked = true;
  showStatus("The counts need the token of this service: reload the page to give it", "is-not");
  if (!token) return;
  headers = { Authorization: `Bearer ${token.trim()}` };
  setTimeout(tick, 0);
}

async function tick() {
  try {
    const answer = await fetch("stats", { cache: "no-store", headers });
    if (answer.status === 401 || answer.status === 429) {
      askForToken();
      return;
    }
    if (!answer.ok) throw new Error(answer.statusText);
    const found = await answer.json();
    showAll(found);
    if (!hasExample && found.promise && found.stats.is_ready) await showExample();
  } catch {
    showStatus("No answer from the service", "is-not");
  }
  setTimeout(tick, 1000);
}

addEventListener("resize", showRates);
tick();
