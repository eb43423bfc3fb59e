import { isValidPhoneNumber } from 'libphonenumber-js/max'
import type { Regex } from '#gen/config/types.ts'

type Builtin = NonNullable<Regex['builtins']>[number]

/** A built-in pattern. */
export interface BuiltinPattern {
  /** Replaces a match. */
  readonly label: string
  readonly pattern: string
  /** Validates a match: returns the end of the valid part of `[start, end)`, or undefined to discard the match. */
  readonly check?: (text: string, start: number, end: number) => { readonly end: number } | undefined
}

/** The built-in patterns (llm.md §13.2). */
export const builtinPatterns: Readonly<Record<Builtin, BuiltinPattern>> = {
  Ssn: { label: '<SSN>', pattern: String.raw`\b(?:\d{5}-\d{4}|\d{3}-\d{6}|\d{3}-\d{2}-\d{4}|\d{9}|\d{3}[- .]\d{2}[- .]\d{4})\b` },
  CreditCard: {
    label: '<CREDIT_CARD>',
    pattern: String.raw`\b(?:(?:4\d{3}|5[0-5]\d{2}|6\d{3}|3\d{3})[ -]?\d{3,4}[ -]?\d{3,4}[ -]?\d{3,5}|1\d{3}[ -]?\d{3,4}[ -]?\d{3,4}[ -]?\d{4,5})\b`,
    // Excludes order numbers: card numbers have a check digit (ISO/IEC 7812).
    check: (text, start, end) => (hasCheckDigit(text.slice(start, end)) ? { end } : undefined),
  },
  PhoneNumber: { label: '<PHONE_NUMBER>', pattern: String.raw`[+(]{0,2}\d[\d ().-]{6,30}`, check: checkPhone },
  Email: { label: '<EMAIL_ADDRESS>', pattern: '[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+\\.[A-Za-z0-9.-]+' },
  CaSin: { label: '<CA_SIN>', pattern: String.raw`\b(?:\d{3}-\d{3}-\d{3}|\d{3} \d{3} \d{3}|\d{9})\b` },
}

/** Verifies the check digit by the Luhn algorithm. */
function hasCheckDigit(text: string): boolean {
  const digits = text.replaceAll(/\D/g, '')
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i])
    sum += i % 2 === 0 ? digit : digit * 2 - (digit > 4 ? 9 : 0)
  }
  return sum % 10 === 0
}

const regions = ['US', 'GB', 'DE', 'IL', 'IN', 'CA', 'BR'] as const
const MIN_PHONE_LENGTH = 7

/** A match may extend into a number that follows. Removes groups of digits from its end until it is a valid phone number. */
function checkPhone(text: string, start: number, end: number): { readonly end: number } | undefined {
  if (/\d/.test(text[start - 1] ?? '')) return undefined
  for (let to = trimEnd(text, start, end); to - start >= MIN_PHONE_LENGTH; to = trimEnd(text, start, lastBreak(text, start, to))) {
    const candidate = text.slice(start, to)
    if (regions.some((region) => isValidPhoneNumber(candidate, region))) return { end: to }
  }
  return undefined
}

function trimEnd(text: string, start: number, end: number): number {
  let to = end
  while (to > start && !/\d/.test(text[to - 1] ?? '')) to--
  return to
}

/** The start of the last group of digits; `start` if there is only one. */
function lastBreak(text: string, start: number, end: number): number {
  let to = end
  while (to > start && /\d/.test(text[to - 1] ?? '')) to--
  return to
}
