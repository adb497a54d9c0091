"use strict";
// Drawing alone: a line chart, bars in tables, numbers. What to draw is page.js's business.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 190, LEFT = 52, RIGHT = 10, TOP = 10, BOTTOM = 24;

function make(tag, { text, className, parent, ...attributes } = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (parent) parent.append(element);
  return element;
}

function draw(tag, attributes, parent, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

function count(value) {
  return Math.round(value).toLocaleString("en");
}

function short(value) {
  if (value >= 1e6) return `${+(value / 1e6).toFixed(1)}M`;
  if (value >= 1e4) return `${+(value / 1e3).toFixed(0)}k`;
  return count(value);
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

function bytes(value) {
  if (value < 1024) return `${count(value)} B`;
  return value < 1024 * 1024 ? `${(value / 1024).toFixed(1)} KB` : `${(value / 1024 / 1024).toFixed(1)} MB`;
}

function duration(seconds) {
  if (seconds < 1) return `${(1000 * seconds).toFixed(1)} ms`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

// The next of 1, 2, 5, 10, 20, .. so that the axis has round numbers and does not jump at every step.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

// `points`: {ago, read, released}, oldest first, at most `span` seconds ago.
function drawRates(svg, points, span) {
  const width = Math.max(svg.clientWidth, 200);
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.replaceChildren();
  const top = Math.max(10, roundUp(Math.max(0, ...points.flatMap((point) => [point.read, point.released]))));
  const x = (point) => LEFT + (width - LEFT - RIGHT) * (1 - point.ago / span);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  for (const share of [0, 0.5, 1]) {
    draw("line", { x1: LEFT, x2: width - RIGHT, y1: y(share * top), y2: y(share * top), class: "grid" }, svg);
    draw("text", { x: LEFT - 8, y: y(share * top) + 4, "text-anchor": "end" }, svg, short(share * top));
  }
  for (const ago of [span, span / 2, 0]) {
    const anchor = ago === 0 ? "end" : ago === span ? "start" : "middle";
    const text = ago === 0 ? "now" : `${ago} s ago`;
    draw("text", { x: x({ ago }), y: HEIGHT - 6, "text-anchor": anchor }, svg, text);
  }
  if (points.length < 2) return;
  const path = (name) => points.map((point) => `${x(point).toFixed(1)},${y(point[name]).toFixed(1)}`).join(" ");
  const ends = [`${x(points.at(-1)).toFixed(1)},${y(0)}`, `${x(points[0]).toFixed(1)},${y(0)}`].join(" ");
  draw("polygon", { points: `${path("read")} ${ends}`, class: "area" }, svg);
  draw("polyline", { points: path("read"), class: "read" }, svg);
  draw("polyline", { points: path("released"), class: "released" }, svg);
}

function bar(share, { mark, label, className } = {}) {
  const track = make("div", { className: `track ${className || ""}`, role: "img", "aria-label": label });
  const fill = make("div", { className: "fill", parent: track });
  fill.style.width = `${Math.min(100, 100 * share).toFixed(2)}%`;
  if (mark !== undefined && mark <= 1) {
    make("div", { className: "mark", parent: track }).style.left = `${(100 * mark).toFixed(2)}%`;
  }
  return track;
}

// Rows are kept and changed in place, so that a screen reader or a selection stays where it is.
function fillTable(table, rows) {
  const body = table.tBodies[0];
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach(({ name, share, mark, label, cells, isNone }, i) => {
    let row = body.rows[i];
    if (!row) {
      row = body.insertRow();
      make("th", { scope: "row", parent: row });
      if (share !== undefined) make("td", { className: "bar", parent: row }).append(bar(0, { label }));
      for (const _ of cells) make("td", { className: "n", parent: row });
    }
    row.className = isNone ? "is-none" : "";
    if (row.cells[0].textContent !== name) row.cells[0].textContent = name;
    if (share !== undefined) setBar(row.cells[1].firstChild, { share, mark, label });
    cells.forEach((cell, j) => {
      const place = row.cells[row.cells.length - cells.length + j];
      if (place.textContent !== cell) place.textContent = cell;
    });
  });
}

function setBar(track, { share, mark, label }) {
  track.setAttribute("aria-label", label);
  track.firstChild.style.width = `${Math.min(100, 100 * share).toFixed(2)}%`;
  track.querySelector(".mark")?.remove();
  if (mark !== undefined && mark <= 1) {
    make("div", { className: "mark", parent: track }).style.left = `${(100 * mark).toFixed(2)}%`;
  }
}
