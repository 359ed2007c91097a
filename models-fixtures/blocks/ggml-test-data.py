"""Writes ggml-test-data.gguf beside this file: the data of ggml's tests/test-quantize-fns.cpp in F32, and what llama.cpp's
own quantisers make of it in every type that apr reads. The metadata has the CRC-32 of what its own readers then read.

    python3 models-fixtures/blocks/ggml-test-data.py LIBGGML_BASE

LIBGGML_BASE is the shared library of that name from a build of llama.cpp; the file here comes from version 0.4.0, as
node-llama-cpp 3.21.1 brings it. The same bytes every time.
"""

import ctypes
import math
import pathlib
import struct
import sys
import zlib

COUNT = 4096
ALIGNMENT = 32
# Name: id in the file, values a block, bytes a block.
TYPES = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "BF16": (30, 1, 2),
    "Q4_0": (2, 32, 18),
    "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34),
    "Q2_K": (10, 256, 84),
    "Q3_K": (11, 256, 110),
    "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210),
    "IQ1_S": (19, 256, 50),
    "IQ1_M": (29, 256, 56),
    "IQ2_XXS": (16, 256, 66),
    "IQ2_XS": (17, 256, 74),
    "IQ2_S": (22, 256, 82),
    "IQ3_XXS": (18, 256, 98),
    "IQ3_S": (21, 256, 110),
    "IQ4_NL": (20, 32, 18),
    "IQ4_XS": (23, 256, 136),
    "TQ1_0": (34, 256, 54),
    "TQ2_0": (35, 256, 66),
    "MXFP4": (39, 32, 17),
    "Q1_0": (41, 128, 18),
    "Q2_0": (42, 64, 18),
}
# Quantisers that refuse to work without an importance matrix get one that weighs everything the same.
IMPORTANCE = ("IQ1_S", "IQ2_XXS", "IQ2_XS")


def f32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def quantise(library: ctypes.CDLL, name: str, data: ctypes.Array) -> bytes:
    type_id, block_size, block_bytes = TYPES[name]
    out = ctypes.create_string_buffer(COUNT // block_size * block_bytes)
    importance = (ctypes.c_float * COUNT)(*([1.0] * COUNT)) if name in IMPORTANCE else None
    size = library.ggml_quantize_chunk(
        type_id, data, out, ctypes.c_int64(0), ctypes.c_int64(1), ctypes.c_int64(COUNT), importance
    )
    if size != len(out.raw):
        raise SystemExit(f"{name}: {size} bytes, expected {len(out.raw)}; is this another version's library?")
    return out.raw


def read_back(library: ctypes.CDLL, name: str, raw: bytes) -> bytes:
    """The values of the blocks as ggml reads them, in F32."""
    if name == "F32":
        return raw
    halves = {"F16": "ggml_fp16_to_fp32_row", "BF16": "ggml_bf16_to_fp32_row"}
    symbol = halves.get(name, "dequantize_row_" + name.lower().replace("_k", "_K"))
    out = (ctypes.c_float * COUNT)()
    getattr(library, symbol)(raw, out, ctypes.c_int64(COUNT))
    return bytes(out)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    library = ctypes.CDLL(sys.argv[1])
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    values = [f32(0.1 + f32(2 * f32(math.cos(i)))) for i in range(COUNT)]
    data = (ctypes.c_float * COUNT)(*values)
    blocks = {name: bytes(data) if name == "F32" else quantise(library, name, data) for name in TYPES}

    header = b"GGUF" + struct.pack("<IQQ", 3, len(blocks), 1 + len(blocks))
    header += text("general.name") + struct.pack("<I", 8) + text("data of ggml's test-quantize-fns")
    for name, raw in blocks.items():
        header += text(f"crc32.{name}") + struct.pack("<II", 4, zlib.crc32(read_back(library, name, raw)))
    body = b""
    for name, raw in blocks.items():
        header += text(name) + struct.pack("<IQIQ", 1, COUNT, TYPES[name][0], len(body))
        body += raw + bytes(-len(raw) % ALIGNMENT)
    header += bytes(-len(header) % ALIGNMENT)
    pathlib.Path(__file__).with_suffix(".gguf").write_bytes(header + body)


main()
