"""The messages in files of TensorFlow, with the fields that are read here: numbers and names as the format has them.

They are in a pool of their own, so that they are no others' where TensorFlow itself is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELDS: Final[Mapping[str, str]] = {
    "Dim": "size:1:int64",
    "TensorShapeProto": "dim:2:Dim* unknown_rank:3:bool",
    "TensorProto": (
        "dtype:1:int32 tensor_shape:2:TensorShapeProto tensor_content:4:bytes float_val:5:float* double_val:6:double*"
        " int_val:7:int32* string_val:8:bytes* scomplex_val:9:float* int64_val:10:int64* bool_val:11:bool*"
        " dcomplex_val:12:double* half_val:13:int32* uint32_val:16:uint32* uint64_val:17:uint64* float8_val:18:bytes"
    ),
    "NameAttrList": "name:1:string attr:2:{AttrValue}",
    "ListValue": (
        "s:2:bytes* i:3:int64* f:4:float* b:5:bool* type:6:int32* shape:7:TensorShapeProto* tensor:8:TensorProto*"
        " func:9:NameAttrList*"
    ),
    "AttrValue": (
        "list:1:ListValue| s:2:bytes| i:3:int64| f:4:float| b:5:bool| type:6:int32| shape:7:TensorShapeProto|"
        " tensor:8:TensorProto| placeholder:9:string| func:10:NameAttrList|"
    ),
    "NodeDef": "name:1:string op:2:string input:3:string* attr:5:{AttrValue}",
    "ArgDef": "name:1:string type:3:int32",
    "OpDef": "name:1:string input_arg:2:ArgDef* output_arg:3:ArgDef*",
    "FunctionDef": "signature:1:OpDef node_def:3:NodeDef* ret:4:{string} attr:5:{AttrValue}",
    "FunctionDefLibrary": "function:1:FunctionDef*",
    "VersionDef": "producer:1:int32 min_consumer:2:int32",
    "GraphDef": "node:1:NodeDef* library:2:FunctionDefLibrary versions:4:VersionDef",
    "TensorInfo": "name:1:string dtype:2:int32 tensor_shape:3:TensorShapeProto",
    "SignatureDef": "inputs:1:{TensorInfo} outputs:2:{TensorInfo} method_name:3:string",
    "SaverDef": "filename_tensor_name:1:string restore_op_name:3:string",
    "MetaInfoDef": "tags:4:string* tensorflow_version:5:string",
    "Any": "type_url:1:string value:2:bytes",
    "AnyList": "value:1:Any*",
    "CollectionDef": "any_list:5:AnyList",
    "AssetFileDef": "tensor_info:1:TensorInfo filename:2:string",
    "MetaGraphDef": (
        "meta_info_def:1:MetaInfoDef graph_def:2:GraphDef saver_def:3:SaverDef"
        " collection_def:4:{CollectionDef} signature_def:5:{SignatureDef}"
        " asset_file_def:6:AssetFileDef*"
    ),
    "SavedModel": "saved_model_schema_version:1:int64 meta_graphs:2:MetaGraphDef*",
    "BundleHeaderProto": "num_shards:1:int32 endianness:2:int32 version:3:VersionDef",
    "SliceExtent": "start:1:int64 length:2:int64",
    "TensorSliceProto": "extent:1:SliceExtent*",
    "BundleEntryProto": (
        "dtype:1:int32 shape:2:TensorShapeProto shard_id:3:int32 offset:4:int64 size:5:int64 crc32c:6:fixed32"
        " slices:7:TensorSliceProto*"
    ),
}
"""For each message, its fields as ``name:number:type``. ``*``: any number of them, ``|``: one of those marked so,
``{type}``: by name."""

_PACKAGE: Final = "tract_tensorflow"
_FIELD: Final = descriptor_pb2.FieldDescriptorProto


def _add_message(file: descriptor_pb2.FileDescriptorProto, name: str, fields: str) -> None:
    message = file.message_type.add(name=name)
    if "|" in fields:
        message.oneof_decl.add(name="value")
    for text in fields.split():
        field_name, number, kind = text.split(":", 2)
        field = message.field.add(name=field_name, number=int(number), label=_FIELD.LABEL_OPTIONAL)
        if kind.endswith("*"):
            field.label = _FIELD.LABEL_REPEATED
        elif kind.endswith("|"):
            field.oneof_index = 0
        elif kind.startswith("{"):
            kind = _add_entry(message, field_name, kind[1:-1])
            field.label = _FIELD.LABEL_REPEATED
        _set_type(field, kind.rstrip("*|"))


def _add_entry(message: descriptor_pb2.DescriptorProto, field: str, kind: str) -> str:
    """The message of a key and a value that a field by name is made of; returns what it is called."""
    name = "".join(part.capitalize() for part in field.split("_")) + "Entry"
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=_FIELD.LABEL_OPTIONAL, type=_FIELD.TYPE_STRING)
    _set_type(entry.field.add(name="value", number=2, label=_FIELD.LABEL_OPTIONAL), kind)
    return f"{message.name}.{name}"


def _set_type(field: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    if kind[0].isupper():
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = getattr(_FIELD, f"TYPE_{kind.upper()}")


def _classes() -> Mapping[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="tract_tensorflow.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        _add_message(file, name, fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


Message = Any
"""A message of this file. Their classes are made of the table above, so that no checker of types knows them."""

CLASSES: Final = _classes()
"""The class of each message, by name."""
