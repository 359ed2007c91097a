/** One broken rule. */
export interface Finding {
  /** Stable name of the rule. */
  readonly rule: string;
  readonly tensor?: string;
  readonly found: string;
  readonly expected: string;
  /** One sentence without the file's name. */
  readonly message: string;
}
