"use strict";
// Training images beside their projections, and the patterns of classes or groups side by side.

const Gallery = (() => {
  const { data, state, at, changed, listeners, setLam } = Explorer;
  const [height, width] = data.shape;
  const buttons = [];  // of each example, as often as galleries show it
  let chosen = -1, round = 0;
  const BUDGET = 24;  // milliseconds of a frame that thumbnails may take
  const seen = new Set();
  const watcher = new IntersectionObserver((entries) => {
    entries.forEach(({ target, isIntersecting }) => (isIntersecting ? seen.add(target) : seen.delete(target)));
    paintSeen();
  }, { rootMargin: "200px" });

  // Paint the thumbnails in view, as many as a frame has time for, the others in the next ones.
  function paintSeen() {
    const mine = ++round, waiting = [...seen];
    const some = () => {
      const started = performance.now();
      while (mine === round && waiting.length && performance.now() - started < BUDGET) waiting.shift().paint();
      if (mine === round && waiting.length) requestAnimationFrame(some);
    };
    some();
  }

  function thumbnail(text, choose) {
    const button = document.createElement("button"), canvas = document.createElement("canvas");
    button.type = "button";
    canvas.setAttribute("aria-hidden", "true");
    button.append(canvas);
    button.setAttribute("aria-label", text);
    button.setAttribute("aria-pressed", "false");
    button.title = text;
    button.addEventListener("click", choose);
    return button;
  }

  const greys = (low, high) => (v) => { const g = Render.grey(v, low, high); return [g, g, g]; };

  function paintGiven(canvas, pixels) {
    Render.paint(canvas, pixels, width, height, greys(...Render.range(pixels)));
  }

  // g·U_λ(p) + b with every atom, whatever is switched off on the stage.
  function projection(example) {
    const [gain, offset] = example.light;
    const values = data.exact
      ? Render.render(data.patterns[example.cls], example.lam, width, height)
      : Render.unpack(example.projection);
    return values.map((v) => gain * v + offset);
  }

  function compare() {
    at("compare").hidden = chosen < 0;
    if (chosen < 0) return;
    const example = data.examples[chosen], given = example.values, projected = projection(example);
    const [low, high] = Render.range(given);
    const residual = given.map((v, i) => v - projected[i]), dark = Explorer.isDark();
    const scale = Math.max(Math.abs(low), Math.abs(high));
    Render.paint(at("given"), given, width, height, greys(low, high));
    Render.paint(at("projected"), projected, width, height, greys(low, high));
    Render.paint(at("residual"), residual, width, height, (v) => Render.signed(v, scale, dark));
    const norm = (v) => Math.sqrt(v.reduce((sum, x) => sum + x * x, 0));
    const missed = norm(residual), whole = norm(given);
    const share = whole > 0 ? ` (${(100 * missed * missed / (whole * whole)).toFixed(1)} % of its energy)` : "";
    const label = example.label ? `, ${Explorer.named(example.label)}` : "";
    const where = data.transformation.names.map((_, k) => Explorer.say(k)).join(", ");
    const moved = example.lam.every((v, k) => Math.abs(v - state.lam[k]) < 1e-9) ? `; ${where}` : "";
    at("compare-text").textContent = `${example.name}${label}: distance ${missed.toPrecision(3)}${share}${moved}`;
  }

  function choose(i) {
    chosen = i;
    buttons.forEach((list, j) => list.forEach((button) => button.setAttribute("aria-pressed", String(i === j))));
    const example = data.examples[i];
    if (example.cls !== state.cls) chooseClass(example.cls);
    setLam(example.lam);
  }

  function makeGallery({ title, text, items }) {
    if (title) {
      const heading = document.createElement("h3"), hint = document.createElement("p");
      [heading.textContent, hint.textContent, hint.className] = [title, text, "hint"];
      at("image-list").append(heading, hint);
    }
    const list = document.createElement("div");
    list.className = "thumbs";
    items.forEach((i) => {
      const example = data.examples[i];
      const about = example.label ? `${example.name}, ${Explorer.named(example.label)}` : example.name;
      const button = thumbnail(about, () => choose(i));
      Object.assign(button.firstChild, { width, height });
      button.paint = () => {
        paintGiven(button.firstChild, example.values);
        watcher.unobserve(button);
        seen.delete(button);
      };
      watcher.observe(button);
      buttons[i].push(button);
      list.append(button);
    });
    at("image-list").append(list);
  }

  function makeImages() {
    if (!data.examples.length) return;
    at("gallery").hidden = false;
    data.examples.forEach((example, i) => {
      // Unpacked when first seen.
      Object.defineProperty(example, "values", {
        get() { return this.unpacked || (this.unpacked = Render.unpack(this.pixels)); },
      });
      buttons[i] = [];
    });
    data.galleries.forEach(makeGallery);
    listeners.push(compare);
  }

  function chooseClass(cls) {
    const lam = Explorer.lamOf(cls);
    state.cls = cls;
    setLam(lam);
    Atoms.reset();
    changed();
  }

  function makeClasses() {
    if (data.patterns.length < 2) return;
    at("classes").hidden = false;
    at("classes-title").textContent = data.words.title;
    at("classes-hint").textContent = data.words.hint;
    const [rows, columns] = data.exact ? data.small : data.view, size = [columns, rows];
    data.patterns.forEach((pattern, cls) => {
      const about = Explorer.named(pattern.label);
      const button = thumbnail(about[0].toUpperCase() + about.slice(1), () => chooseClass(cls));
      [pattern.label, data.notes[cls]].filter(Boolean).forEach((text) => {
        const line = document.createElement("span");
        line.textContent = text;
        button.append(line);
      });
      const range = pattern.range;
      [button.firstChild.width, button.firstChild.height] = size;
      button.paint = () => {
        const values = Explorer.values(cls, Explorer.lamOf(cls), ...size);
        Render.paint(button.firstChild, values, ...size, Explorer.colour(range));
      };
      at("class-list").append(button);
      watcher.observe(button);
    });
    listeners.push(() => {
      [...at("class-list").children].forEach((button, cls) => button.setAttribute("aria-pressed", String(cls === state.cls)));
      paintSeen();
    });
  }

  function start() {
    makeClasses();
    makeImages();
  }

  return { start };
})();

Atoms.start();
Gallery.start();
Explorer.begin();
