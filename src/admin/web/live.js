"use strict";
// Draws the table of routes once a second. The server gives counts since its start; rates and quantiles are made here,
// from the difference to ten seconds ago. All names are outside input: they are set as text, never as HTML.
const WINDOW = 10, HISTORY = 60, ROWS = 100;
const seen = []; // snapshots, oldest first: {at, routes: Map}

function quantile(now, before, q) {
  const old = new Map(before), counts = now.map(([edge, n]) => [edge, n - (old.get(edge) || 0)]);
  const total = counts.reduce((sum, [, n]) => sum + n, 0);
  let left = Math.max(1, Math.ceil(q * total));
  if (total <= 0) return "";
  for (const [edge, n] of counts) if ((left -= n) <= 0) return edge === null ? "> 2 h" : time(edge);
  return "";
}

function time(us) {
  const [value, unit] = us < 1e3 ? [us, "µs"] : us < 1e6 ? [us / 1e3, "ms"] : [us / 1e6, "s"];
  return `${value.toPrecision(value < 100 ? 2 : 3)} ${unit}`;
}

function sparkline(name) {
  const rates = seen.slice(1).map((snap, i) => {
    const was = seen[i].routes.get(name), is = snap.routes.get(name);
    return was && is ? Math.max(0, (is.calls.requests - was.calls.requests) / ((snap.at - seen[i].at) / 1000)) : 0;
  });
  const top = Math.max(1, ...rates), svg = "http://www.w3.org/2000/svg";
  const box = document.createElementNS(svg, "svg"), line = document.createElementNS(svg, "polyline");
  box.setAttribute("viewBox", "0 0 120 24");
  const x = i => 120 - (rates.length - 1 - i) * (120 / (HISTORY - 1));
  line.setAttribute("points", rates.map((r, i) => `${x(i).toFixed(1)},${(22 - 20 * r / top).toFixed(1)}`).join(" "));
  box.append(line);
  return box;
}

function row(name, now, before, seconds) {
  const zero = { calls: { requests: 0, success: 0, failures: 0, latency: { buckets: [] } }, retries: 0 };
  const was = before || zero, calls = now.calls;
  const good = calls.success - was.calls.success, bad = calls.failures - was.calls.failures;
  const rate = (calls.requests - was.calls.requests) / seconds;
  const share = good + bad > 0 ? 100 * good / (good + bad) : null;
  const buckets = [calls.latency.buckets, was.calls.latency.buckets];
  const causes = Object.entries(calls.failures_by_cause).map(([cause, n]) => `${cause} ${n}`).join(", ");
  const cells = [name, sparkline(name), rate.toFixed(rate < 10 ? 1 : 0), share === null ? "" : `${share.toFixed(share < 99.95 && share > 0 ? 1 : 0)} %`,
    quantile(...buckets, 0.5), quantile(...buckets, 0.99), calls.in_flight, now.retries, causes];
  const tr = document.createElement("tr");
  cells.forEach((value, i) => {
    const td = document.createElement("td");
    if (i >= 2 && i <= 7) td.className = "num";
    if (i === 3 && share !== null && share < 99) td.classList.add("bad");
    td.append(value);
    tr.append(td);
  });
  return { rate, tr };
}

async function tick() {
  const state = document.getElementById("state");
  try {
    const answer = await fetch("/metrics.json", { signal: AbortSignal.timeout(5000) });
    const routes = new Map((await answer.json()).routes.map(route => [route.route, route]));
    seen.push({ at: performance.now(), routes });
    if (seen.length > HISTORY + 1) seen.shift();
    const now = seen[seen.length - 1], before = seen[Math.max(0, seen.length - 1 - WINDOW)];
    const seconds = Math.max(1, (now.at - before.at) / 1000);
    const rows = [...routes].map(([name, route]) => row(name, route, before.routes.get(name), seconds));
    rows.sort((a, b) => b.rate - a.rate);
    document.querySelector("#routes tbody").replaceChildren(...rows.slice(0, ROWS).map(({ tr }) => tr));
    state.textContent = routes.size === 0 ? "No calls yet." : routes.size > ROWS ? `The busiest ${ROWS} of ${routes.size}.` : "";
  } catch (error) {
    state.textContent = `No numbers: ${error.message}`;
  }
  setTimeout(tick, 1000);
}
tick();
