"""Transposed convolutions of PyTorch in the catalogue."""

from __future__ import annotations

from catalogue.conv import IMAGE, LINE, VOLUME, conv

ENTRIES = [
    conv("conv_transpose1d", LINE, "4,3,3,f32", "3,f32", stride=2),
    conv("conv_transpose1d, groups", LINE, "4,3,3,f32", "6,f32", stride=3, groups=2, padding=1, output_padding=2),
    conv("conv_transpose1d, one item", "4,S,f32", "4,3,3,f32", dilation=2),
    conv("conv_transpose2d", "S,4,5,6,f32", "4,3,3,3,f32", stride=2, padding=1, output_padding=1),
    conv("conv_transpose2d, groups", IMAGE, "4,2,3,2,f32", "4,f32", stride=(2, 1), groups=2, dilation=(1, 2)),
    conv("conv_transpose2d, dynamic", "1,4,S,3,f32", "4,1,2,2,f32", stride=2, groups=4),
    conv("conv_transpose3d", VOLUME, "2,3,2,3,2,f32", "3,f32", stride=2, output_padding=(1, 0, 1), padding=1),
    conv("conv_transpose1d, integers", "2,4,S,i64", "4,3,2,i64", stride=2),
]
