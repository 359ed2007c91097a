/**
 * Values of the codes of IQ1 types, times 8, plus 64: −1, 0, 1 with a delta of 1/8 (0, 1, 2), with one of −1/8 (4, 5, 6).
 */
export const IQ1_BOOK: u64 = 0x40473f3740494139;
