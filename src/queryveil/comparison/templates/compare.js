"use strict";
(() => {
  const one = (css, at = document) => at.querySelector(css), all = (css, at = document) => [...at.querySelectorAll(css)];
  const data = JSON.parse(one("#figures").textContent), { attackers, exceptions } = data, form = one("#choice");
  const put = (node, text) => { node.textContent = text.replace(/ %/g, "\u00a0%"); };
  const percent = share => {
    for (const n of [3, 5, 7, 9, 17]) {
      const text = +(100 * share).toPrecision(n);
      if (text !== 100 || share >= 1) return text + " %";
    }
  };
  const order = key => (x, y) => {
    const a = key(x), b = key(y), i = a.findIndex((v, j) => v !== b[j]);
    return i < 0 ? 0 : a[i] < b[i] ? -1 : 1;
  };
  const least = (rows, ...key) => [...rows].sort(order(row => key.map(of => of(row))))[0];
  const risk = row => row.risk, loss = row => row.loss;
  const says = f => `${f.title} (${f.label}) finds ${percent(f.share)} of its ${f.what} ` +
    `(${f.sure}; by chance ${percent(f.chance)})`;
  for (const run of data.runs) run.found = run.found.map(f => ({ ...attackers[f.by], ...f }));

  const update = () => {
    const limit = data.limits[form.limit.value], purpose = data.purposes[form.purpose.value], boxes = form.reader;
    const readers = data.readers.filter((_, i) => boxes[i].checked), names = readers.flatMap(reader => reader.attackers);
    const rows = data.runs.map((run, i) => {
      const there = run.found.filter(f => names.includes(f.name)).sort(order(f => [-f.risk]));
      const on = there.filter(f => !exceptions[f.name]), over = on.filter(f => f.risk > limit);
      const holds = run.standing === "holds", met = holds && on[0] && !over[0], kept = run.kept[form.purpose.value];
      const outcome = !holds ? run.standing : met ? "qualifies" : over[0] ? "rejected" : "not attacked";
      const risk = on[0] ? on[0].risk : 1, y = data.shown ? run.shown : on[0] ? risk : null;
      return { ...run, i, there, on, over, met, kept, outcome, risk, y, loss: kept ? purpose.sign * kept.value : Infinity };
    });
    const best = least(rows.filter(row => row.met && row.kept && (purpose.sign > 0 || row.loss < 0)), loss, risk);
    if (best) best.outcome = "best";
    const near = least(rows.filter(row => row.standing === "holds" && row.on[0] && row.kept), risk, loss), at = best || near;

    put(form.shown, percent(limit));
    form.limit.setAttribute("aria-valuetext", percent(limit));
    const titles = readers.map(({ title }) => title[0].toLowerCase() + title.slice(1)).join(", ");
    const those = readers.length < data.readers.length ? ` (${titles})` : "";
    const rule = `whose promise holds and in which no attacker${those} is above ${percent(limit)}`;
    put(one("#said"), best
      ? `Best is ${best.name}: of the runs ${rule}, it keeps most (${purpose.title} ` +
        `${best.kept.text}). ${says(best.on[0])}: of all, the nearest to the limit, with a risk of ${percent(best.risk)}.`
      : !near ? `No run keeps its promise, was attacked and has a measure of ${purpose.title}.`
        : near.met ? `Of the runs ${rule}, none keeps anything of ${purpose.title}.`
        : `No run can be recommended: in each, the promise does not hold, or an attacker${those} may find more than ` +
          `${percent(limit)}, or none was tried. Nearest is ${near.name}, with a risk of ` +
          `${percent(near.risk)}: ${says(near.on[0])}.`);
    const badge = one("#badge"), command = one("#command");
    badge.className = `badge ${data.broken ? "bad" : best ? "good" : "open"}`;
    put(badge, data.broken || (best ? "best: " + best.name : "none is under the limit"));
    command.hidden = !best;
    if (best) command.innerHTML = all("#promises code")[best.i].outerHTML;
    Object.keys(exceptions).forEach((name, i) => {
      const f = at && at.there.find(f => f.name === name);
      const where = !names.includes(name) ? " It stands for none of these readers."
        : f ? ` In ${at.name}, ${says(f)}.` : at ? ` It does not apply to ${at.name}.` : "";
      put(all("#exceptions p")[i], exceptions[name] + where);
    });

    all(".measure").forEach(node => put(node, purpose.title));
    const place = row => [data.outcomes.indexOf(row.outcome), ...(row.met ? [row.loss, row.risk] : [row.risk, row.loss])];
    for (const row of [...rows].sort(order(place))) {
      const line = one(`[data-run="${row.i}"]`), [, outcome, kept, highest] = line.cells, more = row.over.slice(1);
      line.className = row === best ? "best" : row.met ? "" : "out";
      put(outcome, row.outcome);
      put(kept, row.kept ? row.kept.text : "");
      const [binds] = row.on, few = binds && binds.least > limit ? ` (too few targets: ${binds.n})` : "";
      put(one("b", highest), binds ? percent(row.risk) : "");
      put(one("span", highest), binds ? binds.title + (more[0] ? `, and ${more.length} more` : "") + few : "");
      line.parentNode.append(line);
    }
    all("#matrix tbody tr").forEach((line, by) => {
      const cells = rows.map(row => row.on.find(f => f.by === by));
      line.className = cells.some(f => f) ? "" : "out";
      cells.forEach((f, i) => { line.cells[i + 2].className = f && f.risk > limit ? "over" : ""; });
    });
    draw(rows, best, limit);
  };

  const draw = (rows, best, limit) => {
    const under = one("[data-axes]");
    if (!under) return;
    const [left, right, first, last, bottom, top] = under.dataset.axes.split(" ").map(Number), taken = [];
    const height = share => bottom + Math.sqrt(share) * (top - bottom), level = height(limit);
    const free = box => !taken.some(b => b[0] < box[2] && box[0] < b[2] && b[1] < box[3] && box[1] < b[3]);
    const seen = rows.filter(row => row.y != null && row.kept);
    for (const row of seen) {
      row.at = [left + (row.kept.value - first) / (last - first) * (right - left), height(row.y)];
      taken.push([row.at[0] - 6, row.at[1] - 6, row.at[0] + 6, row.at[1] + 6]);
    }
    const front = [], point = row => [row.y, row.loss];
    for (const row of seen.filter(row => data.drawn.includes(row.standing)).sort(order(point))) {
      const end = front.at(-1);
      if (!end || row.loss < end.loss || String(point(row)) === String(point(end))) front.push(row);
    }
    const beside = free([left, level - 20, left + 90, level]) ? left : right - 85;
    taken.push([beside, level - 20, beside + 85, level]);
    const line = 'fill="none" stroke="currentColor" stroke-width="1.4"';
    under.innerHTML = (front[0] ? `<path ${line} class="after" d="M${front.map(row => row.at).join("L")}"/>` : "") +
      `<path ${line} class="limit" stroke-dasharray="6 4" d="M${left} ${level}H${right}"/>` +
      `<text class="limit" x="${beside + 2}" y="${level - 6}">limit ${percent(limit)}</text>`;
    let names = "";
    all("[data-dot]").forEach((node, i) => {
      const row = rows[i], look = row === best ? "picked" : "";
      one("[r='8']", node)?.remove();
      node.setAttribute("display", row.at ? "" : "none");
      if (!row.at) return;
      const [a, b] = row.at, [x, y] = node.dataset.at.split(" "), half = i < 9 ? 5 : 10;
      node.setAttribute("transform", `translate(${a - x} ${b - y})`);
      if (look) under.innerHTML += `<circle ${line} class="chance" cx="${a}" cy="${b}" r="8"/>`;
      for (let k = 0; k < 24; k++) {
        const reach = [7, 15, 24][k >> 3], turn = k * Math.PI / 4;
        const c = a + Math.cos(turn) * (reach + half), d = b - Math.sin(turn) * (reach + 8);
        const box = [c - half, d - 8, c + half, d + 8];
        if (box[0] > left && box[2] < 500 && box[1] > top - 14 && box[3] < bottom && free(box)) {
          names += `<text class="name halo ${look}" x="${c}" y="${d + 5}" text-anchor="middle">${i + 1}</text>`;
          taken.push(box);
          break;
        }
      }
    });
    under.parentNode.lastElementChild.innerHTML = names;
  };

  form.oninput = ({ target }) => {
    // A release that nobody may read needs no limit.
    if (target.name === "reader" && !one("[name=reader]:checked")) target.checked = true;
    update();
  };
  form.onsubmit = event => event.preventDefault();
  form.hidden = false;
  update();
})();
