"""Normalisations of PyTorch in the catalogue."""

from __future__ import annotations

from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry

ENTRIES = [
    Entry("layer_norm", lambda x, w, b: F.layer_norm(x, (3,), w, b), ("S,4,3,f32", "3,f32", "3,f32")),
    Entry("layer_norm, two axes", lambda x: F.layer_norm(x, (4, 3)), ("S,4,3,f32",)),
    Entry("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), ("S,4,3,f32", "4,f32", "4,f32")),
    Entry("rms_norm", lambda x, w: F.rms_norm(x, (3,), w), ("S,4,3,f32", "3,f32")),
    Entry("instance_norm", F.instance_norm, ("2,4,9,f32",)),
    Entry("batch_norm", F.batch_norm, ("S,4,3,f32", "4,f32", "4,f32"), make="positive"),
    Entry("normalize", lambda x: F.normalize(x, dim=1), ("S,4,f32",)),
]
