"""Makes `unigrams.json`: a vocabulary that the package ``sentencepiece`` trained, and the tokens that it gives texts.

It is run by hand, in an environment with sentencepiece, protobuf and tokenizers: python make_unigrams.py
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

sys.path.insert(0, str(Path(__file__).parent))
from vocabularies import CORPUS, TEXTS

KEPT = Path(__file__).with_name("unigrams.json")

RULES = {"ﬁ": "fi", "①": "1", "\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "Ａ": "A", "é": "e\u0301"}
MORE = ["ﬁne ①\u00a0Ａ café", "  the   quick\tfox  ", "größer"]


def trained(folder: Path) -> bytes:
    rules = [
        f"{' '.join(f'{ord(one):X}' for one in old)}\t{' '.join(f'{ord(one):X}' for one in new)}"
        for old, new in RULES.items()
    ]
    (folder / "rules.tsv").write_text("\n".join(rules) + "\n")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_prefix=str(folder / "m"),
        model_type="unigram",
        vocab_size=110,
        normalization_rule_tsv=str(folder / "rules.tsv"),
        bos_id=0,
        pad_id=1,
        eos_id=2,
        unk_id=3,
        num_threads=1,
    )
    return (folder / "m.model").read_bytes()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        content = trained(Path(name))
    model = sentencepiece_model_pb2.ModelProto.FromString(content)
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    kept = {
        "tokens": [one.piece for one in model.pieces],
        "scores": [one.score for one in model.pieces],
        "types": [one.type for one in model.pieces],
        "characters": base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode(),
        "texts": {text: processor.encode(text) for text in [*TEXTS, *MORE] if "<|" not in text and "\0" not in text},
    }
    KEPT.write_text(json.dumps(kept, ensure_ascii=False, indent=0) + "\n")
