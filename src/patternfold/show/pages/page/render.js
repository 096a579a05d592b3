"use strict";
// The pattern, exactly: U_λ(p) = Σ c_j φ(b(γ_j, a(λ, x, y))), as patternfold.manifold.render does.

const Render = (() => {
  const rotation = (theta) => {
    const c = Math.cos(theta), s = Math.sin(theta);
    return [c, -s, s, c];
  };

  // Each family gives F, row by row, and t of (x, y) = F (x', y') + t, from its parameters by name.
  const FAMILIES = {
    "translation": () => [1, 0, 0, 1],
    "scaling": (v) => [v.sx, 0, 0, v.sy],
    "rotation-translation": (v) => rotation(v.theta),
    "similarity": (v) => rotation(v.theta).map((f) => v.s * f),
    "rotation-translation-scaling": (v) => {
      const r = rotation(v.theta);
      return [r[0] * v.sx, r[1] * v.sy, r[2] * v.sx, r[3] * v.sy];
    },
    "affine": (v) => {
      const r = rotation(v.theta);
      return [
        v.sx * r[0], v.sy * (v.shear * r[0] + r[1]),
        v.sx * r[2], v.sy * (v.shear * r[2] + r[3]),
      ];
    },
  };

  // F and t of a λ, given as a list in the family's order.
  function motion(transformation, lam) {
    const named = {};
    transformation.names.forEach((name, k) => { named[name] = lam[k]; });
    const f = FAMILIES[transformation.name](named);
    return { f, t: [named.tx || 0, named.ty || 0] };
  }

  function inverse(f) {
    const d = f[0] * f[3] - f[1] * f[2];
    return [f[3] / d, -f[1] / d, -f[2] / d, f[0] / d];
  }

  // Rows of diag(1/σ) R(−ψ), the linear part of an atom's own coordinates.
  function atomMap(gamma) {
    const c = Math.cos(gamma[0]), s = Math.sin(gamma[0]);
    return [c / gamma[3], s / gamma[3], -s / gamma[4], c / gamma[4]];
  }

  const product = (a, b) => [
    a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
    a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3],
  ];

  // Where an atom lies in the image: u = M (x − centre), with M from the image to the atom.
  function placeAtom(gamma, move) {
    const [f, t] = [move.f, move.t];
    return {
      m: product(atomMap(gamma), inverse(f)),
      x: f[0] * gamma[1] + f[1] * gamma[2] + t[0],
      y: f[2] * gamma[1] + f[3] * gamma[2] + t[1],
    };
  }

  // φ as a function of z = u² + v², and the z beyond which it can't be seen.
  function mother(description) {
    if (description.name === "gaussian") {
      const peak = Math.sqrt(2 / Math.PI);
      return { phi: (z) => peak * Math.exp(-z), far: 24 };
    }
    const mu = description.mu;
    if (mu === -3) {
      return { phi: (z) => { const b = 1 + z; return 1 / (b * b * b); }, far: Infinity };
    }
    return { phi: (z) => Math.pow(1 + z, mu), far: Infinity };
  }

  // Add one atom to the sums, row by row, only where it can be seen.
  function addAtom(sums, width, height, coef, place, phi, far) {
    const pixel = 2 / Math.max(width, height), m = place.m;
    const a = m[0] * m[0] + m[2] * m[2];
    const b = m[0] * m[1] + m[2] * m[3];
    const c = m[1] * m[1] + m[3] * m[3];
    for (let i = 0; i < height; i++) {
      const dy = (i - (height - 1) / 2) * pixel - place.y;
      const nearest = -b * dy / a, least = (c - b * b / a) * dy * dy;
      if (least > far) continue;
      const reach = far === Infinity ? Infinity : Math.sqrt((far - least) / a);
      const middle = (place.x + nearest) / pixel + (width - 1) / 2;
      const first = Math.max(0, Math.ceil(middle - reach / pixel));
      const last = Math.min(width - 1, Math.floor(middle + reach / pixel));
      for (let j = first; j <= last; j++) {
        const dx = (j - (width - 1) / 2) * pixel - place.x;
        sums[i * width + j] += coef * phi((a * dx + 2 * b * dy) * dx + c * dy * dy);
      }
    }
  }

  // U_λ(p) at the pixels of an image; `shown` tells which atoms take part.
  function render(pattern, description, transformation, lam, width, height, shown) {
    const sums = new Float64Array(width * height);
    const move = motion(transformation, lam), { phi, far } = mother(description);
    pattern.coef.forEach((coef, j) => {
      if (shown && !shown[j]) return;
      addAtom(sums, width, height, coef, placeAtom(pattern.gamma[j], move), phi, far);
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

  return { motion, atomMap, inverse, render, grey, signed, paint, unpack };
})();
