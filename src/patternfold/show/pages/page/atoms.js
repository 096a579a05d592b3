"use strict";
// The atoms: their number, the error after each, and a switch for every one.

const Atoms = (() => {
  const { data, state, at, changed, listeners } = Explorer;
  const shown = () => state.shown[state.cls];
  const pattern = () => data.patterns[state.cls];
  let growing = null;

  function setCount(count) {
    shown().forEach((_, j) => { shown()[j] = j < count; });
    changed();
  }

  const count = () => shown().filter(Boolean).length;
  const isPrefix = () => shown().every((on, j) => on === (j < count()));

  function stopGrowing() {
    clearInterval(growing);
    growing = null;
    at("grow").textContent = "Watch it grow";
  }

  function grow() {
    if (growing) return stopGrowing();
    let k = 0;
    at("grow").textContent = "Stop";
    setCount(1);
    const pause = Math.max(60, Math.min(400, 6000 / shown().length));
    growing = setInterval(() => {
      k = isPrefix() ? count() + 1 : k + 1;
      setCount(k);
      if (k >= shown().length) stopGrowing();
    }, pause);
  }

  function makeChips() {
    at("atom-list").replaceChildren(...pattern().coef.map((coef, j) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.textContent = j + 1;
      button.className = coef > 0 ? "positive" : "negative";
      const kind = coef > 0 ? "adds" : "subtracts";
      button.setAttribute("aria-label", `Atom ${j + 1}, ${kind}, coefficient ${coef.toPrecision(3)}`);
      button.title = `coefficient ${coef.toPrecision(3)}`;
      button.addEventListener("click", () => { shown()[j] = !shown()[j]; changed(); });
      const light = (on) => () => at("outlines").querySelector(`[data-atom="${j}"]`)?.classList.toggle("lit", on);
      ["mouseenter", "focus"].forEach((kind) => button.addEventListener(kind, light(true)));
      ["mouseleave", "blur"].forEach((kind) => button.addEventListener(kind, light(false)));
      item.append(button);
      return item;
    }));
  }

  // The error path as a filled curve; its height is the greatest error.
  function drawChart() {
    const path = pattern().error_path, chart = at("chart");
    chart.toggleAttribute("hidden", path.length < 2);
    at("chart-hint").hidden = path.length < 2;
    if (path.length < 2) return;
    const top = Render.range(path)[1], n = path.length;
    const points = path.map((e, k) => `${(100 * k / (n - 1)).toFixed(2)} ${(40 - 36 * e / top).toFixed(2)}`);
    const now = 100 * Math.min(n - 1, Math.max(0, count() - 1)) / (n - 1);
    chart.setAttribute("viewBox", "0 0 100 41");
    chart.setAttribute("preserveAspectRatio", "none");
    chart.innerHTML = `<path class="area" d="M0 40 L${points.join(" L")} L100 40 Z"/>`
      + `<line x1="0" x2="100" y1="40" y2="40"/><path d="M${points.join(" L")}"/>`
      + `<line class="now" x1="${now}" x2="${now}" y1="0" y2="40"/>`;
    const last = path[n - 1].toPrecision(3);
    chart.setAttribute("aria-label", `Error after each atom, falling from ${path[0].toPrecision(3)} to ${last}`);
  }

  function draw() {
    const k = count(), whole = shown().length, path = pattern().error_path;
    at("count").value = k;
    at("count").style.setProperty("--at", `${100 * k / whole}%`);
    at("count-value").textContent = isPrefix() ? `${k} of ${whole}` : `${k} of ${whole}, chosen`;
    [...at("atom-list").querySelectorAll("button")].forEach((button, j) => {
      button.setAttribute("aria-pressed", String(shown()[j]));
    });
    const learned = isPrefix() && k > 0 && path.length === whole;
    const error = learned ? `, error ${path[k - 1].toPrecision(3)} when it had so many` : "";
    const final = path.length ? `, final error ${path[path.length - 1].toPrecision(3)}` : "";
    const about = pattern().label ? Explorer.named(pattern().label) : "";
    const name = about ? `${about[0].toUpperCase()}${about.slice(1)}: ` : "";
    at("caption").textContent = name + (isPrefix() && k === whole
      ? `${name ? "all" : "All"} ${whole} atoms${final}` : `${k} of ${whole} atoms${error}`);
    drawChart();
  }

  // Another class has other atoms.
  function reset() {
    stopGrowing();
    at("count").max = shown().length;
    makeChips();
  }

  function start() {
    if (!data.exact) {
      at("atoms").hidden = true;
      return;
    }
    at("count").addEventListener("input", (event) => { stopGrowing(); setCount(Number(event.target.value)); });
    at("chart").addEventListener("click", (event) => {
      const box = at("chart").getBoundingClientRect();
      const unit = (event.clientX - box.left) / box.width;
      setCount(1 + Math.round(unit * (pattern().error_path.length - 1)));
    });
    at("grow").addEventListener("click", grow);
    at("all").addEventListener("click", () => { stopGrowing(); setCount(shown().length); });
    at("none").addEventListener("click", () => { stopGrowing(); setCount(0); });
    reset();
    listeners.push(draw);
  }

  return { start, reset };
})();
