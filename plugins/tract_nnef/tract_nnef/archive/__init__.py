"""Containers of the files of a model, and the tensors in them.

`open_archive` reads folders, tars and gzip-compressed tars; `write_folder`, `write_tar` and `write_tar_gz` write them.
`read_tensor` and `tensor_file` are for the files in them that hold one tensor each.
"""

from tract_core.data.blocks import Q4_0, Q8_1, BlockFormat, Blocks, encode_q4_0
from tract_nnef.archive.reading import GRAPH, Archive, open_archive
from tract_nnef.archive.tensors import read_tensor, tensor_file
from tract_nnef.archive.writing import Files, tar_gz_bytes, tar_pieces, write_folder, write_tar, write_tar_gz

__all__ = [
    "GRAPH",
    "Q4_0",
    "Q8_1",
    "Archive",
    "BlockFormat",
    "Blocks",
    "Files",
    "encode_q4_0",
    "open_archive",
    "read_tensor",
    "tar_gz_bytes",
    "tar_pieces",
    "tensor_file",
    "write_folder",
    "write_tar",
    "write_tar_gz",
]
