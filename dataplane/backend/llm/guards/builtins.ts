import type { Regex } from '#gen/config/types.ts'

type Builtin = NonNullable<Regex['builtins']>[number]

/** A built-in pattern. */
export interface BuiltinPattern {
  /** Replaces a match. */
  readonly label: string
  readonly pattern: string
  /** Validates a match: returns the end of its valid part, or undefined to discard the match. */
  readonly check?: (text: string, start: number, end: number) => number | undefined
  /** Matches are found by the phone number scanner. `pattern` only tells how much of a stream is held back. */
  readonly isPhone?: boolean
}

/** The built-in patterns (llm.md §13.2). */
export const builtinPatterns: Readonly<Record<Builtin, BuiltinPattern>> = {
  Ssn: { label: '<SSN>', pattern: String.raw`\b(?:\d{5}-\d{4}|\d{3}-\d{6}|\d{3}-\d{2}-\d{4}|\d{9}|\d{3}[- .]\d{2}[- .]\d{4})\b` },
  CreditCard: {
    label: '<CREDIT_CARD>',
    pattern: String.raw`\b(?:(?:4\d{3}|5[0-5]\d{2}|6\d{3}|3\d{3})[ -]?\d{3,4}[ -]?\d{3,4}[ -]?\d{3,5}|1\d{3}[ -]?\d{3,4}[ -]?\d{3,4}[ -]?\d{4,5})\b`,
    // Excludes order numbers: card numbers have a check digit (ISO/IEC 7812).
    check: (text, start, end) => (hasCheckDigit(text, start, end) ? end : undefined),
  },
  PhoneNumber: { label: '<PHONE_NUMBER>', pattern: String.raw`[+(]{0,2}\d[\d ().-]{6,30}`, isPhone: true },
  Email: { label: '<EMAIL_ADDRESS>', pattern: '[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+\\.[A-Za-z0-9.-]+' },
  CaSin: { label: '<CA_SIN>', pattern: String.raw`\b(?:\d{3}-\d{3}-\d{3}|\d{3} \d{3} \d{3}|\d{9})\b` },
}

/** Verifies the check digit of the digits in `[start, end)` by the Luhn algorithm. */
function hasCheckDigit(text: string, start: number, end: number): boolean {
  let sum = 0
  let isDoubled = false
  for (let at = end - 1; at >= start; at--) {
    const digit = text.charCodeAt(at) - 0x30
    if (digit < 0 || digit > 9) continue
    sum += isDoubled ? digit * 2 - (digit > 4 ? 9 : 0) : digit
    isDoubled = !isDoubled
  }
  return sum % 10 === 0
}
