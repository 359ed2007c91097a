/** Ids of ggml's tensor types (`enum ggml_type` of ggml.h). */

export const F32: i32 = 0;
export const F16: i32 = 1;
export const Q4_0: i32 = 2;
export const Q4_1: i32 = 3;
export const Q5_0: i32 = 6;
export const Q5_1: i32 = 7;
export const Q8_0: i32 = 8;
export const Q2_K: i32 = 10;
export const Q3_K: i32 = 11;
export const Q4_K: i32 = 12;
export const Q5_K: i32 = 13;
export const Q6_K: i32 = 14;
export const IQ2_XXS: i32 = 16;
export const IQ2_XS: i32 = 17;
export const IQ3_XXS: i32 = 18;
export const IQ1_S: i32 = 19;
export const IQ4_NL: i32 = 20;
export const IQ3_S: i32 = 21;
export const IQ2_S: i32 = 22;
export const IQ4_XS: i32 = 23;
export const IQ1_M: i32 = 29;
export const BF16: i32 = 30;
export const TQ1_0: i32 = 34;
export const TQ2_0: i32 = 35;
export const MXFP4: i32 = 39;
export const Q1_0: i32 = 41;
export const Q2_0: i32 = 42;

/** Rows that lie interleaved in a group: four vectors of four i32 lanes. */
export const GROUP_ROWS: i32 = 16;
