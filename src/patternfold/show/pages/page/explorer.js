"use strict";
// The page: one state, drawn anew after each change.

const Explorer = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const { transformation, patterns } = data;
  const [rows, columns] = data.view;
  const hasOutlines = data.exact && Formulas.affine;  // ellipses, whatever the parameters

  const state = {
    cls: 0,
    lam: patterns[0].start.slice(),
    moved: 0,
    shown: patterns.map((p) => p.coef.map(() => true)),
    outlines: false,
    signed: false,
  };
  const listeners = [];
  let waiting = false;

  // λ to begin with: each pattern stands in the middle there.
  const start = () => patterns[state.cls].start;

  // λ at which a class stands where the one on the stage does.
  function lamOf(cls) {
    const lam = state.lam.slice();
    transformation.translation.forEach((k) => { lam[k] += patterns[cls].start[k] - start()[k]; });
    return lam;
  }

  // Ask for drawing; many changes within a frame are drawn once.
  function changed() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      listeners.forEach((draw) => draw());
    });
  }

  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };

  // U_λ(p) of a class at any size: from the atoms, or from the frames that Python rendered.
  function values(cls, lam, width, height) {
    if (data.exact) {
      return Render.render(patterns[cls], lam, width, height, state.shown[cls]);
    }
    const k = state.moved, frames = data.frames[cls][k];
    const unit = (lam[k] - transformation.lower[k]) / (transformation.upper[k] - transformation.lower[k]);
    return Render.unpack(frames[Math.round(unit * (frames.length - 1))]);
  }

  function colour(range) {
    if (state.signed) {
      const dark = isDark(), scale = Math.max(Math.abs(range.low), Math.abs(range.high));
      return (v) => Render.signed(v, scale, dark);
    }
    return (v) => { const g = Render.grey(v, range.low, range.high); return [g, g, g]; };
  }

  function drawStage() {
    const pixels = values(state.cls, state.lam, columns, rows);
    Render.paint(at("stage"), pixels, columns, rows, colour(patterns[state.cls].range));
    const where = transformation.names.map((name, k) => say(k)).join(", ");
    const name = patterns[state.cls].label ? `Pattern of ${named(patterns[state.cls].label)}` : "Pattern";
    at("stage").setAttribute("aria-label", `${name}: ${where}`);
    drawOutlines();
  }

  function drawOutlines() {
    const svg = at("outlines");
    svg.replaceChildren();
    if (!state.outlines || !hasOutlines) return;
    const pattern = patterns[state.cls];
    const strongest = Render.range(pattern.coef.map(Math.abs))[1];
    pattern.coef.forEach((coef, j) => {
      if (!state.shown[state.cls][j]) return;
      const { back, x, y } = Render.placeAtom(pattern.gamma[j], state.lam);
      const circle = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      circle.setAttribute("r", "1");
      circle.setAttribute("class", coef > 0 ? "plus" : "minus");
      circle.setAttribute("opacity", (0.3 + 0.7 * Math.abs(coef) / strongest).toFixed(2));
      circle.dataset.atom = j;
      circle.setAttribute("transform", `matrix(${[back[0], back[2], back[1], back[3], x, y].join(" ")})`);
      svg.append(circle);
    });
  }

  const named = (label) => (data.words.name ? `${data.words.name} ${label}` : label);

  const WORDS = {
    theta: "Rotation", tx: "Shift to the right", ty: "Shift down", s: "Size",
    sx: "Stretch across", sy: "Stretch down", shear: "Shear",
  };
  const word = (name) => WORDS[name] || name;
  function format(name, value) {
    const text = name === "theta" ? `${(value * 180 / Math.PI).toFixed(1)}°` : value.toFixed(3);
    return text.replace("-", "\u2212");
  }
  const say = (k) => `${word(transformation.names[k])} ${format(transformation.names[k], state.lam[k])}`;

  function setLam(lam) {
    state.lam = lam.map((v, k) => Math.min(transformation.upper[k], Math.max(transformation.lower[k], v)));
    changed();
  }

  function makeSliders() {
    transformation.names.forEach((name, k) => {
      const low = transformation.lower[k], high = transformation.upper[k];
      const line = document.createElement("div");
      line.className = "slider";
      line.innerHTML = `<label></label><output></output><input type="range">`;
      const [label, output, input] = line.children;
      input.id = output.htmlFor = label.htmlFor = `slider-${name}`;
      label.textContent = word(name);
      // A little more than the upper bound, lest rounding keep the last step from reaching it.
      const step = (high - low) / 1000;
      Object.assign(input, { min: low, max: high + step / 1000, step });
      input.dataset.name = name;
      input.addEventListener("input", () => {
        if (!data.exact && state.moved !== k) state.lam = start().slice();
        state.moved = k;
        state.lam[k] = Math.min(high, Number(input.value));
        changed();
      });
      listeners.push(() => {
        if (Number(input.value) !== state.lam[k]) input.value = state.lam[k];
        input.style.setProperty("--at", `${100 * (state.lam[k] - low) / (high - low)}%`);
        output.textContent = format(name, state.lam[k]);
        input.setAttribute("aria-valuetext", say(k));
      });
      at("sliders").append(line);
    });
  }

  // Dragging the picture moves the pattern, where the family has shifts.
  function makeDraggable() {
    const [kx, ky] = transformation.translation;
    if (kx === undefined || !data.exact) return;
    const frame = at("frame");
    frame.classList.add("movable");
    let last = null;
    frame.addEventListener("pointerdown", (event) => {
      last = event;
      frame.setPointerCapture(event.pointerId);
    });
    frame.addEventListener("pointermove", (event) => {
      if (!last) return;
      const unit = 2 * columns / Math.max(rows, columns) / frame.clientWidth;
      const lam = state.lam.slice();
      lam[kx] += (event.clientX - last.clientX) * unit;
      lam[ky] += (event.clientY - last.clientY) * unit;
      last = event;
      setLam(lam);
    });
    ["pointerup", "pointercancel"].forEach((kind) => frame.addEventListener(kind, () => { last = null; }));
  }

  // A value of parameter k: from its prior, kept inside the bounds, or uniformly.
  function drawn(transformation, k, prior) {
    const [low, high] = [transformation.lower[k], transformation.upper[k]];
    if (!prior || prior[2] === null) return low + Math.random() * (high - low);
    const [kind, mean, std] = prior;
    for (let attempt = 0; attempt < 100; attempt++) {
      const z = std * Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
      const value = kind === "log" ? mean * Math.exp(z) : mean + z;
      if (value >= low && value <= high) return value;
    }
    return Math.min(Math.max(mean, low), high);
  }

  function makeButtons() {
    at("reset").addEventListener("click", () => { state.moved = 0; setLam(start()); });
    at("random").addEventListener("click", () => {
      const prior = data.priors[data.priors.length > 1 ? state.cls : 0];
      const draw = (k) => drawn(transformation, k, prior && prior[k]);
      if (data.exact) return setLam(transformation.names.map((_, k) => draw(k)));
      const lam = start().slice();
      state.moved = Math.floor(Math.random() * lam.length);
      lam[state.moved] = draw(state.moved);
      setLam(lam);
    });
    at("signed").addEventListener("change", (event) => { state.signed = event.target.checked; changed(); });
    at("show-outlines").addEventListener("change", (event) => { state.outlines = event.target.checked; changed(); });
    at("theme").addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      changed();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  }

  function begin() {
    const frame = at("frame"), longest = Math.max(rows, columns);
    frame.style.aspectRatio = `${columns} / ${rows}`;
    frame.style.setProperty("--aspect", columns / rows);
    const [w, h] = [columns / longest, rows / longest];
    at("outlines").setAttribute("viewBox", `${-w} ${-h} ${2 * w} ${2 * h}`);
    at("move-hint").textContent = data.exact
      ? "Drawn here from its atoms, exactly, for every position of the sliders."
      : "This model has parts of your own: one parameter moves at a time, through frames drawn beforehand.";
    at("outlines-label").hidden = !hasOutlines;
    makeSliders();
    makeDraggable();
    makeButtons();
    listeners.push(drawStage);
    changed();
  }

  return { data, state, at, changed, listeners, values, colour, isDark, setLam, lamOf, say, named, begin };
})();
