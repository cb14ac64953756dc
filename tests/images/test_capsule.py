"""The built-in image without CUDA, as it is: every package of its lock, and a torch that computes.

It takes a minute and a gigabyte, so it runs where TEST_IMAGES names a place to keep that;
`make demo` trains in the same image.
"""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from danlu.images import known
from danlu.images.realise import Making, realise
from danlu.images.store import ImageStore

NAME = "pytorch-2.13-cpu"
IMAGE = next(one for one in known.built_in() if one.name == NAME)
PLACE = os.environ.get("TEST_IMAGES", "")
PROVE = """
import importlib.metadata, torch, numpy, pandas, sklearn
print(torch.__version__, torch.cuda.is_available())
print(torch.from_numpy(numpy.ones((2, 3))).sum().item())
print(len(list(importlib.metadata.distributions())))
"""


@pytest.mark.timeout(900)
@pytest.mark.skipif(not PLACE, reason="TEST_IMAGES names no place to keep it")
@pytest.mark.skipif(platform.machine() != IMAGE.lock.arch, reason="it is for another processor")
def test_the_capsule_computes_and_holds_what_its_lock_says() -> None:
    store = ImageStore(Path(PLACE))
    store.keep(IMAGE.lock)

    made = realise(store, IMAGE.id, NAME, Making(variables=tuple(os.environ.items())))

    python = store.environment(IMAGE.id) / "bin" / "python"
    told = subprocess.run([python, "-I", "-c", PROVE], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == ["2.13.0+cpu False", "6.0", str(len(IMAGE.lock.wheels))]
    assert made.digest
