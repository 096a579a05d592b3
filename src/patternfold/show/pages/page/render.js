"use strict";
// The pattern, exactly: U_λ(p) = Σ c_j φ(b(γ_j, a(λ, x, y))), as patternfold.manifold.render does.
// `Formulas` holds a, b and φ, written by the model's components.

const Render = (() => {
  // An atom as λ shows it: its map from the pattern to its own coordinates, and what its coefficient
  // is multiplied by. Families may widen atoms.
  function shownAtom(gamma, lam) {
    const { dictionary, spread, widening } = Formulas;
    if (!spread) return { map: (x, y) => dictionary(gamma, x, y), height: 1 };
    const [height, across, along] = widening(gamma, spread(lam));
    const map = (x, y) => {
      const [u, v] = dictionary(gamma, x, y);
      return [across * u, along * v];
    };
    return { map, height };
  }

  // An atom's map from the image to its own coordinates where it is affine, u = M x + o: its values
  // at three points tell all.
  function affineOf(gamma, lam) {
    const own = shownAtom(gamma, lam).map;
    const map = (x, y) => own(...Formulas.transformation(lam, x, y));
    const o = map(0, 0), right = map(1, 0), down = map(0, 1);
    return { m: [right[0] - o[0], down[0] - o[0], right[1] - o[1], down[1] - o[1]], o };
  }

  // The least value, or 0 if all are above, and the greatest. Math.min(...values) would put every
  // value on the stack, which pictures of 360 × 360 exhaust.
  function range(values) {
    let low = 0, high = -Infinity;
    for (const v of values) {
      if (v < low) low = v;
      if (v > high) high = v;
    }
    return [low, high];
  }

  function inverse(m) {
    const d = m[0] * m[3] - m[1] * m[2];
    return [m[3] / d, -m[1] / d, -m[2] / d, m[0] / d];
  }

  // Where an affine atom lies in the image: its centre, and the ellipse |u| = 1 as M⁻¹.
  function placeAtom(gamma, lam) {
    const { m, o } = affineOf(gamma, lam), back = inverse(m);
    return { m, back, x: -back[0] * o[0] - back[1] * o[1], y: -back[2] * o[0] - back[3] * o[1] };
  }

  // Coordinates of the pixel centres along both sides.
  function axes(width, height) {
    const pixel = 2 / Math.max(width, height);
    const along = (n) => Float64Array.from({ length: n }, (_, i) => (i - (n - 1) / 2) * pixel);
    return { xs: along(width), ys: along(height), pixel };
  }

  // Add an affine atom of a radial φ, row by row, only where it can be seen.
  function addRadial(sums, { xs, ys, pixel }, coef, place) {
    const { m } = place, { mother: phi, far } = Formulas, width = xs.length;
    const a = m[0] * m[0] + m[2] * m[2];
    const b = m[0] * m[1] + m[2] * m[3];
    const c = m[1] * m[1] + m[3] * m[3];
    for (let i = 0; i < ys.length; i++) {
      const dy = ys[i] - place.y, nearest = -b * dy / a, least = (c - b * b / a) * dy * dy;
      if (least > far) continue;
      const reach = far === Infinity ? Infinity : Math.sqrt((far - least) / a);
      const middle = (place.x + nearest) / pixel + (width - 1) / 2;
      const first = Math.max(0, Math.ceil(middle - reach / pixel));
      const last = Math.min(width - 1, Math.floor(middle + reach / pixel));
      for (let j = first; j <= last; j++) {
        const dx = xs[j] - place.x;
        sums[i * width + j] += coef * phi((a * dx + 2 * b * dy) * dx + c * dy * dy);
      }
    }
  }

  // Add an atom of any kind, whose coordinates at a point `map` tells.
  function addAny(sums, points, coef, map) {
    const { mother, radial } = Formulas;
    points.forEach(([x, y], i) => {
      const [u, v] = map(x, y);
      sums[i] += coef * (radial ? mother(u * u + v * v) : mother(u, v));
    });
  }

  // All pixels, row by row; where the transformation is not affine, seen from the pattern.
  function pointsOf({ xs, ys }, lam) {
    const place = Formulas.affine ? (x, y) => [x, y] : (x, y) => Formulas.transformation(lam, x, y);
    return Array.from({ length: xs.length * ys.length }, (_, i) => (
      place(xs[i % xs.length], ys[Math.floor(i / xs.length)])));
  }

  // U_λ(p) at the pixels of an image; `shown` tells which atoms take part.
  function render(pattern, lam, width, height, shown) {
    const sums = new Float64Array(width * height), sides = axes(width, height);
    const { affine, radial } = Formulas;
    const points = affine && radial ? null : pointsOf(sides, lam);
    pattern.coef.forEach((own, k) => {
      if (shown && !shown[k]) return;
      const gamma = pattern.gamma[k], { map, height } = shownAtom(gamma, lam), coef = own * height;
      if (affine && radial) return addRadial(sums, sides, coef, placeAtom(gamma, lam));
      if (!affine) return addAny(sums, points, coef, map);
      const { m, o } = affineOf(gamma, lam);
      addAny(sums, points, coef, (x, y) => [m[0] * x + m[1] * y + o[0], m[2] * x + m[3] * y + o[1]]);
    });
    return sums;
  }

  // Grey from black at low to white at high.
  function grey(value, low, high) {
    const unit = (value - low) / (high - low);
    return Math.round(255 * Math.min(1, Math.max(0, unit)));
  }

  // Blue below zero, orange above, neutral in between; the neutral end follows the page's theme.
  function signed(value, scale, dark) {
    const v = Math.max(-1, Math.min(1, value / scale));
    const to = v > 0 ? [240, 129, 30] : [38, 128, 235];
    const from = dark ? [16, 18, 24] : [250, 250, 252];
    const k = Math.sqrt(Math.abs(v));
    return from.map((channel, i) => Math.round(channel + k * (to[i] - channel)));
  }

  function paint(canvas, values, width, height, colour) {
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = canvas.getContext("2d", { willReadFrequently: true }), picture = context.createImageData(width, height);
    for (let i = 0; i < values.length; i++) {
      const rgb = colour(values[i]);
      picture.data[4 * i] = rgb[0];
      picture.data[4 * i + 1] = rgb[1];
      picture.data[4 * i + 2] = rgb[2];
      picture.data[4 * i + 3] = 255;
    }
    context.putImageData(picture, 0, 0);
  }

  // Numbers kept as bytes between low and high, in base64.
  function unpack(packed) {
    const text = atob(packed.data), values = new Float64Array(text.length);
    const step = (packed.high - packed.low) / 255;
    for (let i = 0; i < text.length; i++) values[i] = packed.low + step * text.charCodeAt(i);
    return values;
  }

  return { placeAtom, render, range, grey, signed, paint, unpack };
})();
