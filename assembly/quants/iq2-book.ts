/** Values of the codes of IQ2 types, plus 64: magnitudes 8, 25, 43 (0, 1, 2), the same negative (4, 5, 6). */
export const IQ2_BOOK: u64 = 0x40152738406b5948;
