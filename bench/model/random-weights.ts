/**
 * Random weights straight in a tensor type's own blocks: random quants under scales that give the values a wanted
 * standard deviation and a mean of about zero. Layouts: the block structs of ggml-common.h.
 */

import { floatToBfloat, floatToHalf } from '../../src/backends/half.ts';
import { type GgmlTypeName, ggmlType } from '../../src/formats/ggml-types.ts';
import type { Random } from './random.ts';

/** Different sets of scales that one tensor uses. */
const SCALE_SETS = 256;

/** Where a block keeps its scales, and a set of them for quants of standard deviation 1/√(values² mean). */
interface BlockScales {
  readonly at: number;
  readonly length: number;
  write(scales: DataView, deviation: number, random: Random): void;
}

/** Root mean square of uniform whole numbers 0 … count − 1 minus `zero`. */
function spread(count: number, zero: number): number {
  let sum = 0;
  for (let q = 0; q < count; q++) sum += (q - zero) ** 2;
  return Math.sqrt(sum / count);
}

function sign(random: Random): number {
  return random.bits() & 1 ? 1 : -1;
}

/** One f16 scale; its random sign takes the mean of quants that are not symmetric to zero. */
function singleScale(rms: number): BlockScales {
  return {
    at: 0,
    length: 2,
    write: (view, deviation, random) =>
      view.setUint16(0, floatToHalf((sign(random) * random.between(0.6, 1.4) * deviation) / rms), true),
  };
}

/** Q4_K and Q5_K: d, dmin, then eight scales and eight minima of 6 bits; equal ones, so that dmin/d centres the quants. */
function kScales(count: number): BlockScales {
  const centre = (count - 1) / 2;
  const rms = spread(count, centre) * 48; // scales are 32 … 63
  return {
    at: 0,
    length: 16,
    write(view, deviation, random) {
      const d = deviation / rms;
      view.setUint16(0, floatToHalf(d), true);
      view.setUint16(2, floatToHalf(d * centre), true);
      const scales = Array.from({ length: 8 }, () => 32 + random.below(32));
      for (let j = 0; j < 4; j++) {
        const [low, high] = [scales[j]!, scales[j + 4]!];
        view.setUint8(4 + j, low | ((high >> 4) << 6));
        view.setUint8(8 + j, low | ((high >> 4) << 6));
        view.setUint8(12 + j, (high & 15) | ((high & 15) << 4));
      }
    },
  };
}

/** Q6_K: sixteen signed 8-bit scales and d at the end of the block. */
const q6kScales: BlockScales = {
  at: 192,
  length: 18,
  write(view, deviation, random) {
    for (let j = 0; j < 16; j++) view.setInt8(j, sign(random) * (64 + random.below(64)));
    view.setUint16(16, floatToHalf(deviation / (spread(64, 32) * 97)), true);
  },
};

/** `kvalues_iq4nl` of ggml-common.h. */
const IQ4_BOOK = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/** Twice the magnitudes of E2M1. */
const MXFP4_BOOK = [0, 1, 2, 3, 4, 6, 8, 12];

function rootMeanSquare(values: readonly number[]): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length);
}

/** IQ4_XS: d, then eight scales of 6 bits less 32, the upper two bits of each in a word, the lower four in nibbles. */
const iq4xsScales: BlockScales = {
  at: 0,
  length: 8,
  write(view, deviation, random) {
    view.setUint16(0, floatToHalf(deviation / (rootMeanSquare(IQ4_BOOK) * 23.5)), true);
    let high = 0;
    for (let j = 0; j < 8; j++) {
      const scale = 32 + sign(random) * (16 + random.below(16));
      high |= (scale >> 4) << (2 * j);
      view.setUint8(4 + (j >> 1), view.getUint8(4 + (j >> 1)) | ((scale & 15) << (4 * (j & 1))));
    }
    view.setUint16(2, high, true);
  },
};

/** MXFP4: a power of two. */
const mxfp4Scales: BlockScales = {
  at: 0,
  length: 1,
  write: (view, deviation, random) =>
    view.setUint8(0, Math.round(128 + Math.log2(deviation / rootMeanSquare(MXFP4_BOOK)) + random.between(-0.5, 0.5))),
};

const SCALES: Partial<Record<GgmlTypeName, BlockScales>> = {
  Q4_0: singleScale(spread(16, 8)),
  Q8_0: singleScale(spread(255, 127)),
  Q4_K: kScales(16),
  Q5_K: kScales(32),
  Q6_K: q6kScales,
  IQ4_XS: iq4xsScales,
  MXFP4: mxfp4Scales,
};

/** Writes the bits of one float. */
const FLOATS: Partial<Record<GgmlTypeName, (view: DataView, at: number, value: number) => void>> = {
  F32: (view, at, value) => view.setFloat32(at, value, true),
  F16: (view, at, value) => view.setUint16(at, floatToHalf(value), true),
  BF16: (view, at, value) => view.setUint16(at, floatToBfloat(value), true),
};

/**
 * Fills chunks of whole blocks with values of mean `mean` (floats only) and standard deviation `deviation`. The chunk
 * must start on a multiple of 4 bytes of its buffer and be followed by 3 spare bytes.
 * @throws RangeError for a type that cannot be generated
 */
export function randomWeights(
  type: GgmlTypeName,
  deviation: number,
  random: Random,
  mean = 0,
): (chunk: Uint8Array) => void {
  const { blockBytes } = ggmlType(type);
  const float = FLOATS[type];
  if (float !== undefined) {
    const reach = deviation * Math.sqrt(3); // of a uniform distribution
    return (chunk) => {
      const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      for (let at = 0; at < chunk.length; at += blockBytes) float(view, at, mean + random.between(-reach, reach));
    };
  }
  const scales = SCALES[type];
  if (scales === undefined || mean !== 0) throw new RangeError(`no generator for random ${type} weights`);
  const sets = Array.from({ length: SCALE_SETS }, () => {
    const set = new Uint8Array(scales.length);
    scales.write(new DataView(set.buffer), deviation, random);
    return set;
  });
  return (chunk) => {
    random.fill(new Uint32Array(chunk.buffer, chunk.byteOffset, Math.ceil(chunk.length / 4)));
    // No quantiser writes −128: its quants are symmetric.
    if (type === 'Q8_0') for (let i = 0; i < chunk.length; i++) if (chunk[i] === 0x80) chunk[i] = 0x81;
    for (let at = 0; at < chunk.length; at += blockBytes) {
      chunk.set(sets[random.below(SCALE_SETS)]!, at + scales.at);
    }
  };
}
