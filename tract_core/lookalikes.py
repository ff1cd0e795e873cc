"""What a file is that was taken for a model and is none: told from its first bytes.

It is asked when a file cannot be read, never before, so that no model is refused for what it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

HEAD: Final = 1024
"""How many bytes from the beginning of a file are enough."""

_SHOWN: Final = 60
"""Characters of a text that are quoted."""


class Lookalike(NamedTuple):
    """``what``: what the file is, as "a ZIP archive". ``advice``: what to do about it."""

    what: str
    advice: str


def recognise(head: bytes, name: str = "") -> Lookalike | None:
    """What a file called ``name`` is, whose first `HEAD` bytes are ``head``; ``None`` when that cannot be told."""
    known = next((Lookalike(*said) for fits, *said in _KNOWN if fits(head)), None)
    return known or _text(head) or _external_data(name)


def _begins(*magic: bytes, at: int = 0) -> Callable[[bytes], bool]:
    return lambda head: head[at:].startswith(magic)


def _matches(pattern: bytes) -> Callable[[bytes], bool]:
    return lambda head: re.match(pattern, head, re.IGNORECASE | re.DOTALL) is not None


def _is_zeros(head: bytes) -> bool:
    return len(head) > 16 and not any(head)


_LOOK: Final = "give the path of the model; if this was downloaded, the server sent it in the place of the file"
_UNPACK: Final = "unpack it, and load the model that is in it"
_EXPORT_TORCH: Final = "export the model from Python: torch.onnx.export(model, inputs, 'model.onnx')"
_EXPORT_WEIGHTS: Final = "weights alone are no model: export the model that uses them to ONNX"
_CONVERT_TENSORFLOW: Final = "convert it to ONNX, as with tf2onnx"

_KNOWN: Final[Sequence[tuple[Callable[[bytes], bool], str, str]]] = (
    (
        _begins(b"version https://git-lfs.github.com/spec/"),
        "a Git LFS pointer: the file that it stands for was not downloaded",
        "run 'git lfs pull' in its repository, or download the file itself",
    ),
    (_is_zeros, "a file of zeros, as an interrupted download leaves it", "download the model again"),
    (
        _matches(rb"\s*<(!doctype html|html|head|body)\b"),
        "an HTML page, not the file behind it",
        "download the file itself: from GitHub its 'raw' address, from Hugging Face the one with 'resolve' in it",
    ),
    (
        _matches(rb"\s*<\s*ir_version\b"),
        "an ONNX model written as text",
        "turn it into a file: onnx.save(onnx.load(path, format='onnxtxt'), 'model.onnx')",
    ),
    (
        _matches(rb"\s*ir_version\s*:"),
        "an ONNX model written as text",
        "turn it into a file: onnx.save(onnx.load(path, format='textproto'), 'model.onnx')",
    ),
    (
        _matches(rb'\s*\{\s*"irVersion"'),
        "an ONNX model written as JSON",
        "turn it into a file: onnx.save(onnx.load(path, format='json'), 'model.onnx')",
    ),
    (_matches(rb"\s*<(\?xml|error\b)"), "an XML text", _LOOK),
    (_matches(rb'\s*[\[{]\s*["\[\]{}]'), "a JSON text", _LOOK),
    (_matches(rb"PK\x03\x04.*(/data\.pkl|/\.format_version|/\.data/|archive_format)"), "a PyTorch file", _EXPORT_TORCH),
    (_begins(b"PK\x03\x04"), "a ZIP archive", _UNPACK),
    (_begins(b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c"), "a packed file", _UNPACK),
    (_begins(b"ustar", at=257), "a tar archive", _UNPACK),
    (
        _matches(rb"\x80[\x02-\x05]"),
        "a Python pickle, as torch.save and joblib write it",
        "export the model that it holds: torch.onnx.export for PyTorch, skl2onnx.to_onnx for scikit-learn",
    ),
    (_begins(b"TFL3", at=4), "a TensorFlow Lite model", f"{_CONVERT_TENSORFLOW} (--tflite)"),
    (_begins(b"\x89HDF\r\n"), "an HDF5 file, as Keras writes it", _CONVERT_TENSORFLOW),
    (_begins(b"ORTM", at=4), "a model in the ORT format", "take the ONNX file that it was made from"),
    (_begins(b"ftrt", b"ptrt"), "a TensorRT engine", "take the ONNX file that it was built from"),
    (_begins(b"GGUF"), "a GGUF file", _EXPORT_WEIGHTS),
    (_begins(b"CRVO"), "a policy as an asset", "name it as *.crvo, which tract-inferers reads"),
    (_matches(rb'.{6}\0\0\s*\{\s*"'), "a safetensors file", _EXPORT_WEIGHTS),
    (_begins(b"\x93NUMPY"), "an array of NumPy", "give the path of the model"),
    (_begins(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF"), "an image or a sound", "give the path of the model"),
)
"""How a kind of file is told, what it is, and what to do about it. The first that fits is taken."""


def _text(head: bytes) -> Lookalike | None:
    """A file that begins with a line of plain text."""
    line = head.strip().partition(b"\n")[0].strip()
    try:
        text = line.decode("ascii")
    except UnicodeDecodeError:
        return None
    if len(text) < 4 or not text.isprintable() or any(byte < 9 for byte in head):
        return None
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return Lookalike(f"a text that begins with {shown!r}", _LOOK)


def _external_data(name: str) -> Lookalike | None:
    """The file beside a model in which its weights are, told by its name."""
    model, found, _ = re.sub(r"[._]data$", "\0", name).partition("\0")
    if not found:
        return None
    return Lookalike("the external data of a model", f"give the path of the model itself, as {model!r}")
