"""Four devices give what one device gives: chunks are spread over them, sums are not reordered."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = """
import sys
import jax
import numpy as np
jax.config.update("jax_disable_most_optimizations", True)  # compiling is all the time
import patternfold as pf
from patternfold import datasets
from patternfold.learning import many, observations
from patternfold.learning.effort import LEARNING
from patternfold.learning.stream import stack as stacks

assert len(jax.local_devices()) == int(sys.argv[2])
observations.CHUNK_BYTES["cpu"] = 1  # the least: chunks of 8 images
rng = np.random.default_rng(0)
patterns = [datasets.random_pattern(2, rng) for _ in range(2)]
parts = [datasets.random_images(p, 16, rng, "translation", shape=(10, 10), noise=0.02,
                                dtype=np.float64)[0] for p in patterns]
images, labels = np.concatenate(parts), np.repeat([0, 1], 16)
seen = observations.Observations.put(images.reshape(32, -1).astype("f"), pf.Grid(10, 10))
devices = {device for chunk in seen.chunks for device in chunk.images.devices()}
found = pf.project(patterns[0], images, "translation", effort=LEARNING)
options = {"transformation": "translation", "random_state": 0, "n_starts": 1, "n_exchanges": 0}
pats = pf.PATS(2, **options).fit(images)
jpats = pf.JPATS(2, n_joint=1, n_tuning=1, **options).fit(images, labels)
stacks.BLOCK_BYTES["cpu"], many.GROWN_ON, many.SETTLED_ON = 16 * 100 * 8, 8, 8
streamed = pf.PATS(1, **options).fit(pf.open_stack(images))
np.savez(
    sys.argv[1], chunks=len(seen.chunks), devices=len(devices),
    stack_lam=streamed.parameters_, stack_coef=streamed.pattern_.coef,
    lam=found.parameters, distances=found.distances,
    coef=pats.pattern_.coef, gamma=pats.pattern_.gamma, pats_lam=pats.parameters_,
    path=pats.error_path_, joint_path=jpats.error_path_, joint_lam=jpats.cross_parameters_,
    joint_coef=np.concatenate([p.coef for p in jpats.patterns_]),
)
"""


def run(path: Path, count: int) -> dict[str, np.ndarray]:
    source = str(Path(__file__).parents[1] / "src")
    environment = os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-c", SCRIPT, str(path), str(count)]
    subprocess.run(command, env=environment, check=True)
    with np.load(path) as arrays:
        return dict(arrays)


@pytest.mark.slow
def test_four_devices_give_what_one_gives(tmp_path):
    one, four = (run(tmp_path / f"{count}.npz", count) for count in (1, 4))
    assert one.pop("chunks") == four.pop("chunks") == 4
    assert (one.pop("devices"), four.pop("devices")) == (1, 4)
    for name, value in one.items():
        # The same sums in the same order, in float64.
        np.testing.assert_allclose(four[name], value, rtol=1e-9, atol=1e-9, err_msg=name)
        assert np.isfinite(value).all()
    assert one["path"][-1] < 0.9
