/** One broken rule. */
export interface Finding {
  /** Stable name of the rule. */
  readonly rule: string;
  /** Tensor that the finding is about. */
  readonly tensor?: string;
  /** Metadata key that the finding is about. */
  readonly key?: string;
  readonly found: string;
  readonly expected: string;
  /** One sentence without the file's name. */
  readonly message: string;
  /** Why nothing can be computed while the rule is broken, as a clause; null where the model can be run all the same. */
  readonly obstacle: string | null;
}

/** "KEY is FOUND, expected EXPECTED". */
export function keyFinding(
  rule: string,
  key: string,
  found: number | string,
  expected: string,
  obstacle: string | null,
): Finding {
  const message = `metadata ${key} is ${found}, expected ${expected}`;
  return { rule, key, found: String(found), expected, message, obstacle };
}
