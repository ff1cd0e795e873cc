"""What files of TFLite are made of, as data: the tables, with their fields in order.

A field is written ``name:kind``, with ``=default`` where that is not 0, and ``-`` stands for one that is gone. Kinds
are numbers (``i32``), ``bool``, ``text``, names of tables, ``[kind]`` for lists, and ``union`` for a table whose name
another field says. Source: schema.fbs of LiteRT 2.3 (version 3 of the format). `options` has what operators say.
"""

from __future__ import annotations

from typing import Final

from tract_tensorflow.tflite.options import OPTIONS, words

TABLES: Final[dict[str, str]] = {
    "Model": (
        "version:u32 operator_codes:[OperatorCode] subgraphs:[SubGraph] description:text buffers:[Buffer] "
        "metadata_buffer:[i32] metadata:[Metadata] signature_defs:[SignatureDef] "
        "external_buffer_groups:[ExternalBufferGroup] external_buffers:[ExternalBuffer]"
    ),
    "OperatorCode": "deprecated_builtin_code:i8 custom_code:text version:i32=1 builtin_code:i32",
    "SubGraph": (
        "tensors:[Tensor] inputs:[i32] outputs:[i32] operators:[Operator] name:text debug_metadata_index:i32=-1"
    ),
    "Tensor": (
        "shape:[i32] type:i8 buffer:u32 name:text quantization:QuantizationParameters is_variable:bool "
        "sparsity:SparsityParameters shape_signature:[i32] has_rank:bool variant_tensors:[VariantSubType] "
        "external_buffer:u32"
    ),
    "QuantizationParameters": (
        "min:[f32] max:[f32] scale:[f32] zero_point:[i64] details_type:u8 details:union quantized_dimension:i32"
    ),
    "SparsityParameters": "traversal_order:[i32] block_map:[i32] dim_metadata:[DimensionMetadata]",
    "DimensionMetadata": (
        "format:i8 dense_size:i32 array_segments_type:u8 array_segments:union array_indices_type:u8 array_indices:union"
    ),
    "VariantSubType": "shape:[i32] type:i8 has_rank:bool",
    "Operator": (
        "opcode_index:u32 inputs:[i32] outputs:[i32] builtin_options_type:u8 builtin_options:union "
        "custom_options:[u8] custom_options_format:i8 mutating_variable_inputs:[bool] intermediates:[i32] "
        "large_custom_options_offset:u64 large_custom_options_size:u64 builtin_options2_type:u8 "
        "builtin_options2:union debug_metadata_index:i32=-1"
    ),
    "Buffer": "data:[u8] offset:u64 size:u64",
    "Metadata": "name:text buffer:u32",
    "SignatureDef": "inputs:[TensorMap] outputs:[TensorMap] signature_key:text - subgraph_index:u32",
    "TensorMap": "name:text tensor_index:u32",
    "ExternalBufferGroup": "name:text",
    "ExternalBuffer": "id:u32 group:u32 offset:u64 length:u64 packing:text",
    "CustomQuantization": "custom:[u8]",
    "BlockwiseQuantization": "scales:i32 zero_points:i32 block_size:i32 block_shape:[i32]",
    "MultiAxisQuantization": "scales:i32 zero_points:i32 block_size:i32 quantized_dimensions:[i32]",
    "Int32Vector": "values:[i32]",
    "Uint16Vector": "values:[u16]",
    "Uint8Vector": "values:[u8]",
    **OPTIONS,
}

TENSOR_TYPES: Final = words(
    "FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64 COMPLEX128 UINT64 "
    "RESOURCE VARIANT UINT32 UINT16 INT4 BFLOAT16 INT2 UINT4 FLOAT8_E4M3FN FLOAT8_E5M2"
)
"""Element types, by number."""

QUANTIZATION_DETAILS: Final = words("NONE CustomQuantization BlockwiseQuantization MultiAxisQuantization")
"""What a tensor says of its quantisation in another way, by number."""

SPARSE_INDICES: Final = words("NONE Int32Vector Uint16Vector Uint8Vector")
"""How a sparse axis holds its places, by number."""
