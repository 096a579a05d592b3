"""JAX's compiled code, kept between runs in the user's cache folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "PATTERNFOLD_CACHE"


def cache_folder() -> Path | None:
    """Return the folder: that of PATTERNFOLD_CACHE ("off" for none), else the system's usual."""
    named = os.environ.get(VARIABLE)
    if named == "off":
        return None
    if named:
        return Path(named)
    home = Path.home()
    if sys.platform == "darwin":
        base = home / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "patternfold"


def use_cache() -> None:
    """Let JAX keep compiled code, unless the user has set this up or the folder can't be made."""
    folder = cache_folder()
    if folder is None or os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
