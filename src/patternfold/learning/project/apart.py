"""The best ends of a search that are different poses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from patternfold.learning.project.found import SAME_POSE
from patternfold.model.box import Box


def best_apart(
    box: Box,
    lam: Float[Array, "B M C d"],
    cost: Float[Array, "B M C"],
    limit: tuple[float, Array],
    count: int,
) -> tuple[Float[Array, "B M R d"], Bool[Array, "B M R"]]:
    """Keep each image's best end, and others elsewhere that cost little more."""
    most = limit[0] * cost.min(axis=2) + limit[1]
    picked, least = apart(box, lam, cost, count)
    return picked, jnp.isfinite(least) & (least <= most[:, :, None])


def apart(
    box: Box, lam: Float[Array, "B M C d"], cost: Float[Array, "B M C"], count: int
) -> tuple[Float[Array, "B M R d"], Float[Array, "B M R"]]:
    """The best ends that are different poses, and their costs, infinite where there are no more."""

    def pick(open_cost: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        best = open_cost.argmin(axis=2)[..., None]
        least = jnp.take_along_axis(open_cost, best, axis=2)[..., 0]
        own = jnp.take_along_axis(lam, best[..., None], axis=2)
        closed = jnp.where(box.separation(lam, own) <= SAME_POSE, jnp.inf, open_cost)
        return closed, (own[:, :, 0], least)

    _, (picked, least) = jax.lax.scan(pick, cost, length=min(count, cost.shape[2]))
    return jnp.moveaxis(picked, 0, 2), jnp.moveaxis(least, 0, 2)
