/**
 * Activations as the products take them.
 *
 * Formats F32 (0), F16 (1), BF16 (2): f32 values, rounded to the format, row by row, `width` floats a row.
 *
 * Formats Q8_0 (3), Q8_K (4) and Q8_K with i16 quants (5): one record for each segment of 256 columns of a row. The records of a segment lie
 * together for all rows, so that a tile of weights meets a dense run of memory: record (segment, row) is at
 * (segment · rows + row) · RECORD bytes. A last segment of fewer columns has a whole record; what lies behind its
 * columns is never read.
 *
 *   plain simd                            relaxed
 *     0  quants i16[256]                    0  quants i8[256]
 *   512  scales                           256  scales                        RECORD_SCALES
 *   528  Q8_K: sums of 32 i16[8]          272  …                             RECORD_SUMS32
 *   544  Q8_K: sums of 16 i16[16]         288  …                             RECORD_SUMS16
 *        Q8_0: −8 · sums of 32 i32[8]          …                             RECORD_OFFSETS
 *   576  end                              320  end of Q8_K
 *                                         320  Q8_0 and 5: quants i16[256]   RECORD_WIDE
 *                                         832  end of Q8_0 and 5
 *
 * Scales are f32: one of a Q8_K record, eight of a Q8_0 record (values of binary16, as ggml keeps them).
 *
 * Behind the records of Q8_0, and of Q8_K in the plain build, lie as many *stair* records, for the products of one token
 * with packed weights (simd/stairs.ts says what they hold). Stair record (segment, row) is at
 * stairs_offset + (segment · rows + row) · stair_bytes:
 *
 *   Q8_K                                       Q8_0
 *      0  scale f32                               0  scales f32[8]
 *     16  sums of 32 i16[8]
 *     32  offsets for nibbles i32[8]             32  offsets for nibbles less 8 i32[8]    STAIRS_NIBBLE_OFFSETS
 *     64  factors for nibbles i16[256]           64  factors for nibbles i16[256]         STAIRS_NIBBLES
 *    576  offsets for six bits i32[16]          576  offsets for bytes i32[8]             STAIRS_BYTE_OFFSETS
 *                                              608  −8 · sums of 32 i32[8]               STAIRS_OFFSETS
 *    640  factors for six bits i16[16][20]      640  factors for bytes i16[256]           STAIRS_BYTES
 *   1280  end                                  1152  end
 */

export const FORMAT_F32: i32 = 0;
export const FORMAT_F16: i32 = 1;
export const FORMAT_BF16: i32 = 2;
export const FORMAT_Q8_0: i32 = 3;
export const FORMAT_Q8_K: i32 = 4;
/** Where the quants are i16 anyway it is the same. */
export const FORMAT_Q8_K_WIDE: i32 = ASC_FEATURE_RELAXED_SIMD ? 5 : 4;

/** Columns of a segment. */
export const SEGMENT: i32 = 256;

/** Bytes of the quants of 8 columns. */
export const OCTET: usize = ASC_FEATURE_RELAXED_SIMD ? 8 : 16;

export const RECORD_SCALES: usize = ASC_FEATURE_RELAXED_SIMD ? 256 : 512;
export const RECORD_SUMS32: usize = RECORD_SCALES + 16;
export const RECORD_SUMS16: usize = RECORD_SCALES + 32;
export const RECORD_OFFSETS: usize = RECORD_SCALES + 32;
/** The quants as i16. */
export const RECORD_WIDE: usize = ASC_FEATURE_RELAXED_SIMD ? 320 : 0;
export const RECORD_Q8_K: usize = ASC_FEATURE_RELAXED_SIMD ? 320 : 576;
/** Of Q8_0 and of Q8_K with i16 quants. */
export const RECORD_Q8_0: usize = ASC_FEATURE_RELAXED_SIMD ? 832 : 576;

export const STAIRS_SUMS32: usize = 16;
export const STAIRS_NIBBLE_OFFSETS: usize = 32;
export const STAIRS_NIBBLES: usize = 64;
export const STAIRS_SIX_OFFSETS: usize = 576;
export const STAIRS_SIXES: usize = 640;
export const STAIRS_BYTE_OFFSETS: usize = 576;
/** As RECORD_OFFSETS. */
export const STAIRS_OFFSETS: usize = 608;
export const STAIRS_BYTES: usize = 640;

/** Bytes of a stair record; 0 where a format has none. */
export function stair_bytes(format: i32): usize {
  if (format == FORMAT_Q8_0) return 1152;
  return format == FORMAT_Q8_K && !ASC_FEATURE_RELAXED_SIMD ? 1280 : 0;
}

/** Bytes from the activations to the first stair record. */
export function stairs_offset(format: i32, width: i32, rows: i32): usize {
  return row_stride(format, width) * <usize>((width + SEGMENT - 1) / SEGMENT) * rows;
}

/** Bytes from a row to the next one. */
export function row_stride(format: i32, width: i32): usize {
  if (format == FORMAT_Q8_K) return RECORD_Q8_K;
  if (format == FORMAT_Q8_0 || format == FORMAT_Q8_K_WIDE) return RECORD_Q8_0;
  return (<usize>width) << 2;
}

/** Bytes from a segment of a row to the next one. */
export function segment_stride(format: i32, rows: i32): usize {
  if (format == FORMAT_Q8_K) return RECORD_Q8_K * rows;
  if (format == FORMAT_Q8_0 || format == FORMAT_Q8_K_WIDE) return RECORD_Q8_0 * rows;
  return SEGMENT << 2;
}

/** Bytes that `rows` rows of `width` columns take in a format. */
export function activation_bytes(format: i32, width: i32, rows: i32): u32 {
  const segments = <u32>((width + SEGMENT - 1) / SEGMENT);
  if (format >= FORMAT_Q8_0) return <u32>(row_stride(format, width) + stair_bytes(format)) * segments * rows;
  return <u32>width * <u32>rows * 4;
}
