import os, pathlib, subprocess, sys
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/oracle"))


@pytest.fixture(scope="session")
def build():
    """The build folder whose programs are tested."""
    return pathlib.Path(os.environ.get("SKIPSTONE_BUILD", ROOT / "build"))


@pytest.fixture(scope="session")
def smollm2():
    path = pathlib.Path(os.environ.get("SKIPSTONE_TEST_MODEL", ROOT / "models/SmolLM2-135M-Instruct.Q4_1.gguf"))
    if not path.exists():
        pytest.skip("models/SmolLM2-135M-Instruct.Q4_1.gguf is missing: ./quickstart fetches it")
    return path


@pytest.fixture(scope="session")
def tiny():
    """A tiny random model that answers nonsense quickly."""
    return ROOT / "tests/oracle/models/q4_1.gguf"


@pytest.fixture(scope="session")
def skipstone(build):
    def run(*args, input=None, check=True, timeout=120, env=None):
        p = subprocess.run([str(build / "skipstone"), *map(str, args)], input=input, capture_output=True, timeout=timeout, env={**os.environ, **(env or {})})
        assert not check or p.returncode == 0, p.stderr.decode(errors="replace")
        return p
    return run
