"use strict";
// The pictures of the tutorial. `Formulas` and `Model` come from tutorial-model.js, which the build
// writes with the formulas of the library's own components; `Render` is the explorer's.

const Tutorial = (() => {
  const SIZE = 200, START = Model.start;
  const pattern = { coef: Model.coef, gamma: Model.gamma };
  const [height, width] = Model.shape;
  const images = Model.images.map(Render.unpack);
  const norm = (v) => Math.sqrt(v.reduce((sum, x) => sum + x * x, 0));
  const minus = (text) => text.replace("-", "\u2212");
  const degrees = (v) => minus(`${(v * 180 / Math.PI).toFixed(0)}°`);
  const number = (v) => minus(v.toFixed(2));

  const isDark = () => document.documentElement.dataset.theme === "dark";

  function element(kind, attributes = {}, ...children) {
    const made = document.createElement(kind);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    made.append(...children);
    return made;
  }

  // Text in which the sign after each "_" stands lower.
  const lowered = (text) => text.split(/_(.)/u).map((part, i) => i % 2 ? element("sub", {}, part) : part);
  const spoken = (text) => text.replaceAll("_", " ");

  // A picture with its caption.
  function picture(place, caption) {
    const canvas = element("canvas", { role: "img", "aria-label": spoken(caption) });
    const text = element("figcaption", {}, ...lowered(caption));
    place.append(element("figure", {}, canvas, text));
    return { canvas, text };
  }

  // A slider that calls back with its value; returns how to set it from elsewhere.
  function slider(place, name, [low, high, step], value, show, changed) {
    const output = element("output", {}, show(value));
    const input = element("input", { type: "range", min: low, max: high, step, value, "aria-label": spoken(name) });
    const set = (v) => {
      input.value = v;
      output.textContent = show(Number(v));
      input.setAttribute("aria-valuetext", show(Number(v)));
    };
    input.addEventListener("input", () => { set(input.value); changed(Number(input.value)); });
    set(value);
    place.append(element("label", { class: "pf-slider" }, element("span", {}, ...lowered(name)), output, input));
    return set;
  }

  function button(place, text, clicked) {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", clicked);
    place.append(made);
  }

  const greys = (low, high) => (v) => { const g = Render.grey(v, low, high); return [g, g, g]; };
  const top = Render.range(Render.render(pattern, START, SIZE, SIZE))[1];

  function drawGrey(canvas, values, w = SIZE, h = SIZE, high = top) {
    Render.paint(canvas, values, w, h, greys(0, high));
  }

  function drawSigned(canvas, values, w, h, scale) {
    const dark = isDark();
    Render.paint(canvas, values, w, h, (v) => Render.signed(v, scale, dark));
  }

  // Two columns: pictures, and what moves them.
  function parts(figure) {
    const shown = element("div", { class: "pf-pictures" }), controls = element("div", { class: "pf-controls" });
    figure.append(shown, controls);
    return { shown, controls };
  }

  // A curve with a mark; points are (x, y) in the unit square, y upward.
  function curve(place, label) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 100 44");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("class", "pf-curve");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    place.append(svg);
    return (points, at) => {
      const path = points.map(([x, y]) => `${(100 * x).toFixed(2)} ${(42 - 40 * y).toFixed(2)}`);
      svg.innerHTML = `<path class="area" d="M0 42 L${path.join(" L")} L100 42 Z"/><path d="M${path.join(" L")}"/>`
        + `<line x1="${100 * at[0]}" x2="${100 * at[0]}" y1="0" y2="42"/>`;
    };
  }

  const figures = {};

  figures.atom = (figure) => {
    const { shown, controls } = parts(figure), { canvas } = picture(shown, "one atom");
    const gamma = [0.5, 0.1, 0, 0.45, 0.15];
    const draw = () => drawGrey(canvas, Render.render({ coef: [1], gamma: [gamma] }, START, SIZE, SIZE), SIZE, SIZE, 1);
    const names = ["turned by ψ", "moved to the right, τ_x", "moved down, τ_y", "wide along, σ_x", "wide across, σ_y"];
    const ranges = [[-1.57, 1.57, 0.01], [-0.8, 0.8, 0.01], [-0.8, 0.8, 0.01], [0.05, 0.8, 0.01], [0.05, 0.8, 0.01]];
    names.forEach((name, k) => slider(controls, name, ranges[k], gamma[k], k ? number : degrees, (v) => {
      gamma[k] = v;
      draw();
    }));
    return draw;
  };

  figures.sum = (figure) => {
    const { shown, controls } = parts(figure), n = pattern.coef.length;
    const sum = picture(shown, "the sum"), last = picture(shown, "the last atom added");
    let count = 5;
    const draw = () => {
      const scale = Math.max(...pattern.coef.map(Math.abs)) / 2;
      drawGrey(sum.canvas, Render.render(pattern, START, SIZE, SIZE, pattern.coef.map((_, j) => j < count)));
      const only = Render.render(pattern, START, SIZE, SIZE, pattern.coef.map((_, j) => j === count - 1));
      drawSigned(last.canvas, only, SIZE, SIZE, scale);
      const c = pattern.coef[count - 1];
      last.text.textContent = `atom ${count} ${c > 0 ? "adds (orange)" : "takes away (blue)"}: c = ${number(c)}`;
    };
    slider(controls, "atoms", [1, n, 1], count, (v) => `${v} of ${n}`, (v) => { count = v; draw(); });
    return draw;
  };

  figures.move = (figure) => {
    const { shown, controls } = parts(figure), { canvas } = picture(shown, "U_λ(p)");
    const lam = START.slice();
    const draw = () => drawGrey(canvas, Render.render(pattern, lam, SIZE, SIZE));
    const names = ["turned by θ", "shifted to the right, t_x", "shifted down, t_y", "scaled by s"];
    const ranges = [[-3.14, 3.14, 0.01], [-0.5, 0.5, 0.01], [-0.5, 0.5, 0.01], [0.5, 1.5, 0.01]];
    names.forEach((name, k) => slider(controls, name, ranges[k], lam[k], k ? number : degrees, (v) => {
      lam[k] = v;
      draw();
    }));
    return draw;
  };

  figures.pose = (figure) => {
    const { shown, controls } = parts(figure);
    // The image that is turned most nearly by 120°: far from where one would begin.
    const off = Model.lam.map(([theta]) => Math.abs(Math.abs(theta) - 2)), which = off.indexOf(Math.min(...off));
    const u = images[which], right = Model.lam[which];
    const given = picture(shown, "an image u"), moved = picture(shown, "U_λ(p)"), left = picture(shown, "what is left");
    const at = (theta) => Render.render(pattern, [theta, ...right.slice(1)], width, height);
    const distance = (v) => norm(u.map((x, i) => x - v[i])) / norm(u);
    const angles = Array.from({ length: 181 }, (_, i) => -Math.PI + i * Math.PI / 90);
    const curveOf = angles.map((theta) => distance(at(theta))), most = Math.max(...curveOf);
    const plot = curve(controls, "distance against the angle"), said = element("p", { role: "status" });
    let theta = START[0];
    const draw = () => {
      const v = at(theta), high = Render.range(u)[1], found = distance(v);
      drawGrey(given.canvas, u, width, height, high);
      drawGrey(moved.canvas, v, width, height, high);
      drawSigned(left.canvas, u.map((x, i) => x - v[i]), width, height, high);
      plot(curveOf.map((d, i) => [i / 180, d / most]), [(theta + Math.PI) / (2 * Math.PI)]);
      said.textContent = `distance ${found.toFixed(3)} of ‖u‖`;
    };
    const set = slider(controls, "turned by θ", [-3.14, 3.14, 0.01], theta, degrees, (v) => { theta = v; draw(); });
    button(controls, "Show the nearest point", () => { theta = right[0]; set(theta); draw(); });
    controls.append(said);
    return draw;
  };

  figures.tangent = (figure) => {
    const { shown, controls } = parts(figure), h = 1e-3, n = 100;
    const exact = picture(shown, "exact"), flat = picture(shown, "along the tangent"), rest = picture(shown, "difference");
    const turned = (theta) => Render.render(pattern, [theta, ...START.slice(1)], n, n);
    const here = turned(0), there = turned(h), tangent = there.map((v, i) => (v - here[i]) / h);
    const said = element("p", { role: "status" });
    let theta = 0.15;
    const draw = () => {
      const v = turned(theta), w = here.map((x, i) => x + theta * tangent[i]), d = v.map((x, i) => x - w[i]);
      drawGrey(exact.canvas, v, n, n);
      drawGrey(flat.canvas, w, n, n);
      drawSigned(rest.canvas, d, n, n, top);
      said.textContent = `they differ by ${(100 * norm(d) / norm(v)).toFixed(1)} % of the norm`;
    };
    slider(controls, "turned by θ", [-1, 1, 0.01], theta, degrees, (v) => { theta = v; draw(); });
    controls.append(said);
    return draw;
  };

  figures.growth = (figure) => {
    const { shown, controls } = parts(figure), n = pattern.coef.length, path = Model.error_path;
    const { canvas, text } = picture(shown, "the pattern");
    const plot = curve(controls, "error after each atom");
    let count = n;
    const draw = () => {
      drawGrey(canvas, Render.render(pattern, START, SIZE, SIZE, pattern.coef.map((_, j) => j < count)));
      text.textContent = `error ${path[count - 1].toFixed(3)} after ${count} atom${count > 1 ? "s" : ""}`;
      plot(path.map((e, k) => [k / (n - 1), e / path[0]]), [(count - 1) / (n - 1)]);
    };
    slider(controls, "atoms", [1, n, 1], count, (v) => `${v} of ${n}`, (v) => { count = v; draw(); });
    return draw;
  };

  figures.align = (figure) => {
    const shown = element("div", { class: "pf-mosaic" }), controls = element("div", { class: "pf-controls" });
    figure.append(shown, controls);
    const sources = images.map((values) => {
      const canvas = document.createElement("canvas");
      drawGrey(canvas, values, width, height, Render.range(values)[1]);
      return canvas;
    });
    const places = sources.map(() => element("canvas", { width: 88, height: 88, role: "img", "aria-label": "an image" }));
    shown.append(...places);
    let share = 0;
    // The pose undone in part: turned and shifted back by a share, sizes in geometric steps.
    const draw = () => places.forEach((canvas, i) => {
      const [theta, tx, ty, s] = Model.lam[i], context = canvas.getContext("2d"), half = canvas.width / 2;
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.fillStyle = "#000";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.translate(half, half);
      context.scale(s ** -share, s ** -share);
      context.rotate(-share * theta);
      context.translate(-share * tx * half, -share * ty * half);
      context.drawImage(sources[i], -half, -half, canvas.width, canvas.height);
    });
    slider(controls, "from as they are to aligned", [0, 1, 0.01], 0, (v) => `${(100 * v).toFixed(0)} %`, (v) => { share = v; draw(); });
    const means = element("div", { class: "pf-pictures" });
    figure.append(means);
    const before = picture(means, `mean of all ${Model.n_images} as they are`), after = picture(means, "mean of the aligned");
    [[before, Model.mean], [after, Model.aligned_mean]].forEach(([{ canvas }, packed]) => {
      const values = Render.unpack(packed);
      drawGrey(canvas, values, width, height, Render.range(values)[1]);
    });
    return draw;
  };

  function start() {
    const draws = [...document.querySelectorAll(".pf-figure")].map((place) => figures[place.dataset.figure](place));
    const all = () => draws.forEach((draw) => draw());
    new MutationObserver(all).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    all();
  }

  return { start };
})();

Tutorial.start();
