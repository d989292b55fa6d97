"""Settings as TOML: what is written is read again, None too."""

from pathlib import Path

import pytest
from batchppo_cli.errors import BadInput
from batchppo_cli.toml import read_toml, to_toml
from hypothesis import given, settings
from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: text != "none")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, object]
) -> None:
    file = tmp_path_factory.getbasetemp() / "settings.toml"
    file.write_text(to_toml(document), encoding="utf-8", newline="")
    assert read_toml(file) == document


def test_how_it_looks() -> None:
    agent = {"rate": 1e-05, "flag": True, "target_kl": None, "kwargs": {"sizes": [64, 64]}}
    assert to_toml({"agent": agent, "task": 'a "task"', "a.b": {}}) == (
        'task = "a \\"task\\""\n\n'
        '[agent]\nrate = 1e-05\nflag = true\ntarget_kl = "none"\nkwargs = { sizes = [64, 64] }\n\n'
        '["a.b"]\n'
    )


@pytest.mark.parametrize("content", [b"a = ", b"\xff", b"a = 1\na = 2"])
def test_what_is_no_toml(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(BadInput, match=r"a\.toml: neither the config\.json of a run nor TOML"):
        read_toml(tmp_path / "a.toml")
