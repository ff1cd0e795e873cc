"""What a file is that was taken for a model and is none: told from its first bytes.

It is asked when a file cannot be read, never before, so that no model is refused for what it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

HEAD: Final = 1024
"""How many bytes from the beginning of a file are enough."""

_SHOWN: Final = 60
"""Characters of a text that are quoted."""


class Lookalike(NamedTuple):
    """``what``: what the file is, as "a ZIP archive". ``advice``: what to do about it, where a model is wanted.

    ``as_values``: how an array is made of it, where it is something that a model may take, as an image.
    """

    what: str
    advice: str
    as_values: str = ""


def recognise(head: bytes, name: str = "") -> Lookalike | None:
    """What a file called ``name`` is, whose first `HEAD` bytes are ``head``; ``None`` when that cannot be told."""
    known = next((Lookalike(*said) for fits, *said in _KNOWN if fits(head)), None)
    return known or _named(name) or _text(head) or _external_data(name)


def recognise_folder(names: Collection[str]) -> Lookalike | None:
    """What a folder is in which there are files of these names; ``None`` when that cannot be told."""
    return next(
        (Lookalike(*said) for pattern, *said in _FOLDERS if any(map(re.compile(pattern).fullmatch, names))), None
    )


def _begins(*magic: bytes, at: int = 0) -> Callable[[bytes], bool]:
    return lambda head: head[at:].startswith(magic)


def _matches(pattern: bytes) -> Callable[[bytes], bool]:
    return lambda head: re.match(pattern, head, re.IGNORECASE | re.DOTALL) is not None


def _is_zeros(head: bytes) -> bool:
    return len(head) > 16 and not any(head)


_LOOK: Final = "give the path of the model; if this was downloaded, the server sent it in the place of the file"
_UNPACK: Final = "unpack it, and load the model that is in it"
_PATH: Final = "give the path of the model"
_EXPORT_TORCH: Final = (
    "in Python, tract_torch.load(module, example) takes the module itself, and torch.onnx.export(module, example, "
    "'model.onnx') writes a file"
)
_EXPORT_WEIGHTS: Final = (
    "weights alone are no model: export the model that uses them to ONNX, one of transformers with "
    "'optimum-cli export onnx --model FOLDER OUTPUT'"
)
_MADE_FROM: Final = "take the ONNX file, or the module of PyTorch, that it was made from"
_TF2ONNX: Final = "convert it to ONNX: python -m tf2onnx.convert"
_KERAS: Final = (
    "in Python, keras.saving.load_model(path).export('folder') writes a SavedModel, which tract-tensorflow reads; with "
    "('model.onnx', format='onnx') it writes an ONNX file"
)
_ONNXMLTOOLS: Final = "convert it to ONNX in Python: onnxmltools.convert_{0}(model, initial_types=...)"
_IMAGE: Final = (
    "an image",
    "give the path of the model; it takes the image as the value of an input, with --input NAME=FILE",
    "--input NAME=FILE takes it for the input NAME",
)
_SOUND: Final = (
    "a sound",
    "give the path of the model; it takes a WAV file as the value of an input, with --input NAME=FILE.wav",
    "--input NAME=FILE.wav takes one in PCM for the input NAME; 'ffmpeg -i FILE -c:a pcm_s16le sound.wav' writes it",
)
_FILM: Final = ("a film, or an image or a sound packed as one", _PATH)

_SIZE: Final = rb"[\x80-\xff]{0,4}[\0-\x7f]"
"""A number of bytes, in messages of protobuf."""
_SAVED_MODEL: Final = ("a SavedModel of TensorFlow", "give its folder, which tract-tensorflow reads")
_CHECKPOINT: Final = ("a checkpoint of TensorFlow", "it has no graph: give the folder of a SavedModel that has it")
_FROZEN: Final = ("a frozen graph of TensorFlow", "name it as *.pb, which tract-tensorflow reads")
_COREML: Final = ("a model of Core ML", _MADE_FROM)
_OPENVINO: Final = ("a model of OpenVINO", _MADE_FROM)
_PADDLE: Final = (
    "a model of PaddlePaddle",
    "convert it to ONNX: paddle2onnx --model_dir FOLDER --save_file model.onnx",
)

_KNOWN: Final[Sequence[tuple[Any, ...]]] = (
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
    (_matches(rb"\s*(<\?xml[^>]*>\s*)?<net\s[^>]*\bversion="), "a model of OpenVINO", _MADE_FROM),
    (_matches(rb"\s*<(\?xml|error\b)"), "an XML text", _LOOK),
    (
        _matches(rb'\s*\{.{0,200}"(format"\s*:\s*"(layers|graph)-model|modelTopology)"'),
        "a model of TensorFlow.js",
        f"{_TF2ONNX} --tfjs model.json --output model.onnx",
    ),
    (_matches(rb'\s*\{.{0,200}"learner"\s*:'), "a model of XGBoost", _ONNXMLTOOLS.format("xgboost")),
    (
        _matches(rb'\s*\{.{0,800}"(architectures|model_type)"\s*:'),
        "the configuration of a model of transformers",
        _EXPORT_WEIGHTS,
    ),
    (_matches(rb'\s*\{\s*"(cells|nbformat)"'), "a notebook", _PATH),
    (_matches(rb'\s*[\[{]\s*["\[\]{}]'), "a JSON text", _LOOK),
    (_matches(rb"tree\nversion=v\d"), "a model of LightGBM", _ONNXMLTOOLS.format("lightgbm")),
    (_begins(b"CBM1"), "a model of CatBoost", "in Python, model.save_model('model.onnx', format='onnx') writes ONNX"),
    (_matches(rb"binf|\{.{0,12}learner"), "a model of XGBoost", _ONNXMLTOOLS.format("xgboost")),
    (_begins(b"model_checkpoint_path:"), *_CHECKPOINT),
    (_matches(rb"\s*node\s*\{\s*name\s*:"), *_FROZEN),
    (_begins(b"7767517\n"), "a model of ncnn", _MADE_FROM),
    (
        _matches(rb"\s*(name\s*:\s*\"[^\"]*\"\s*)?(layers?\s*\{|input\s*:\s*\")"),
        "a network of Caffe",
        "convert it to ONNX, as with caffe2onnx",
    ),
    (_matches(rb"(#[^\n]*\n|\s)*\[net(work)?\]"), "a network of Darknet", "export it to ONNX from PyTorch"),
    (_matches(rb"PK\x03\x04.*(/data\.pkl|/\.format_version|/\.data/|archive_format)"), "a PyTorch file", _EXPORT_TORCH),
    (_matches(rb"PK\x03\x04.{26}(metadata|config)\.json"), "a model of Keras", _KERAS),
    (
        _matches(rb"PK\x03\x04.{26}[^\0]{1,300}\.npy"),
        "an archive of arrays of NumPy",
        "give the path of the model; the arrays are its inputs with --input-from-npz, where they are called so",
        "--input-from-npz takes it",
    ),
    (_begins(b"PK\x03\x04"), "a ZIP archive", _UNPACK),
    (_begins(b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c"), "a packed file", _UNPACK),
    (_begins(b"ustar", at=257), "a tar archive", _UNPACK),
    (
        _matches(rb"\x80[\x02-\x05]|x[\x01\x5e\x9c\xda].{0,30}[\x80-\xff\0]"),
        "a Python pickle, as torch.save and joblib write it",
        "export the model that it holds: torch.onnx.export for PyTorch, skl2onnx.to_onnx for scikit-learn",
    ),
    (_begins(b"TFL3", at=4), "a TensorFlow Lite model", "name it as *.tflite, which tract-tensorflow reads"),
    (_matches(rb".{4}ET\d\d"), "a model of ExecuTorch", _EXPORT_TORCH),
    (_begins(b"\x89HDF\r\n"), "an HDF5 file, as Keras writes it", _KERAS),
    (_begins(b"ORTM", at=4), "a model in the ORT format", "take the ONNX file that it was made from"),
    (_begins(b"ftrt", b"ptrt"), "a TensorRT engine", "take the ONNX file that it was built from"),
    (_begins(b"RKNN"), "a model compiled for a device", _MADE_FROM),
    (_matches(rb"\x08[\x01-\x1f]\x12" + _SIZE + rb"\n" + _SIZE + rb"\n"), *_COREML),
    (_matches(rb"\x08\x01\x12" + _SIZE + rb"\n" + _SIZE + rb"[\x12\x1a\x22\x2a]"), *_SAVED_MODEL),
    (_matches(rb"\n" + _SIZE + rb"\n" + _SIZE + rb"[\w./:^-]{1,99}\x12[\x01-\x1f][A-Z]\w"), *_FROZEN),
    (_begins(b"GGUF", b"ggml", b"lmgg", b"fmgg", b"tjgg"), "a GGUF file", _EXPORT_WEIGHTS),
    (_begins(b"CRVO"), "a policy as an asset", "name it as *.crvo, which tract-inferers reads"),
    (_matches(rb'.{6}\0\0\s*\{\s*"'), "a safetensors file", _EXPORT_WEIGHTS),
    (_begins(b"\x93NUMPY"), "an array of NumPy", _PATH, "--input NAME=FILE.npy takes it, with the name of an input"),
    (_begins(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*", b"qoif"), *_IMAGE),
    (_matches(rb"BM.{4}\0{4}"), *_IMAGE),
    (_matches(rb"RIFF.{4}WEBP|.{4}ftyp(heic|heix|mif1|avif)"), *_IMAGE),
    (_matches(rb"RIFF.{4}WAVE|fLaC|OggS|ID3[\x02-\x04]|\xff[\xf2\xf3\xfb]|FORM.{4}AIF|\.snd"), *_SOUND),
    (_matches(rb"RIFF|.{4}ftyp|\x1aE\xdf\xa3"), *_FILM),
    (_begins(b"%PDF-"), "a PDF document", _PATH),
    (_begins(b"PAR1", b"ARROW1"), "a table of data", _PATH),
    (_begins(b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"), "a program or a library", _PATH),
    (_begins(b"SQLite format 3"), "a database", _PATH),
)
"""How a kind of file is told, what it is, and what to do about it. The first that fits is taken."""

_NAMED: Final[Sequence[tuple[str, tuple[str, str]]]] = (
    (r".*\.(meta|index|data-\d+-of-\d+)", _CHECKPOINT),
    (r".*\.pd(model|iparams)", _PADDLE),
    (r".*\.mnn", ("a model of MNN", _MADE_FROM)),
    (r".*\.(hef|tflm|nb|dlc|om|kmodel|rknn)", ("a model compiled for a device", _MADE_FROM)),
    (r".*\.(engine|plan|trt)", ("a TensorRT engine", "take the ONNX file that it was built from")),
    (r".*\.caffemodel", ("the weights of a network of Caffe", "convert it to ONNX, as with caffe2onnx")),
    (r".*\.(pt|pth|ckpt)", ("a PyTorch file", _EXPORT_TORCH)),
)
"""What has no beginning of its own: the name of a file, what it is, and what to do about it."""

_FOLDERS: Final = (
    (r"saved_model\.pb(txt)?", *_SAVED_MODEL),
    (r"coremldata\.bin", *_COREML),
    (r"Manifest\.json", *_COREML),
    (r"data\.pkl", "a PyTorch file that was unpacked", _EXPORT_TORCH),
    (r"checkpoint|.*\.index", *_CHECKPOINT),
    (r".*\.pdmodel", *_PADDLE),
    (r"openvino_model\.xml", *_OPENVINO),
    (r"adapter_config\.json", "an adapter of a model of transformers", _EXPORT_WEIGHTS),
    (
        r"model_index\.json",
        "a pipeline of diffusers",
        "export it to ONNX: optimum-cli export onnx --model FOLDER OUTPUT",
    ),
    (r"(.*\.safetensors|pytorch_model.*\.bin)", "a model of transformers, or the weights of one", _EXPORT_WEIGHTS),
)
"""A file that tells what the folder around it is, and what to do about it. The first that fits is taken."""


def _named(name: str) -> Lookalike | None:
    """A file whose name tells more than its first bytes."""
    return next((Lookalike(*said) for pattern, said in _NAMED if re.fullmatch(pattern, name.lower())), None)


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
