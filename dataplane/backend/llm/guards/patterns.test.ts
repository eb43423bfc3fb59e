import { describe, expect, test } from '@jest/globals'
import type { Regex } from '#gen/config/types.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { compilePatterns, type Patterns } from './patterns.ts'

function compile(config: Pick<Regex, 'matches' | 'builtins'>): Patterns {
  const patterns = compilePatterns(config)
  if (typeof patterns === 'string') throw new Error(patterns)
  return patterns
}

const mask = (builtin: NonNullable<Regex['builtins']>[number], text: string): string => runSync(compile({ builtins: [builtin] }).mask(text))

describe('built-in patterns', () => {
  test.each([
    ['Ssn', 'is 123-45-6789.', 'is <SSN>.'],
    ['Ssn', '12345-6789 123-456789 123456789 123 45 6789 123.45.6789', '<SSN> <SSN> <SSN> <SSN> <SSN>'],
    ['Ssn', 'x123-45-6789 1234567890 123-45-67890', 'x123-45-6789 1234567890 123-45-67890'],
    ['CreditCard', 'pay 4111 1111 1111 1111 or 4111-1111-1111-1111 or 4111111111111111', 'pay <CREDIT_CARD> or <CREDIT_CARD> or <CREDIT_CARD>'],
    ['CreditCard', 'amex 378282246310005, discover 6011111111111117', 'amex <CREDIT_CARD>, discover <CREDIT_CARD>'],
    ['CreditCard', 'order 4111 1111 1111 1112 has no check digit', 'order 4111 1111 1111 1112 has no check digit'],
    ['CreditCard', '2111 1111 1111 1111', '2111 1111 1111 1111'],
    ['PhoneNumber', 'call +1 650 253 0000 or (650) 253-0000!', 'call <PHONE_NUMBER> or <PHONE_NUMBER>!'],
    ['PhoneNumber', 'london 020 7946 0958', 'london <PHONE_NUMBER>'],
    ['PhoneNumber', 'call 12 650-253-0000 now', 'call 12 <PHONE_NUMBER> now'],
    ['PhoneNumber', 'since 1999 01', 'since 1999 01'],
    ['Email', 'to a.b+c@example.co.uk, please', 'to <EMAIL_ADDRESS>, please'],
    ['Email', 'ask bob@example.com.', 'ask <EMAIL_ADDRESS>'],
    ['Email', 'a@b', 'a@b'],
    ['CaSin', '046 454 286 046-454-286 046454286', '<CA_SIN> <CA_SIN> <CA_SIN>'],
    ['CaSin', '046-454 286', '046-454 286'],
  ] as const)('%s guard masks the text %s', (builtin, text, masked) => {
    expect(mask(builtin, text)).toBe(masked)
  })

  test('two patterns that match the same digits are one hit with the label of the first', () => {
    expect(runSync(compile({ builtins: ['Ssn', 'CaSin'] }).mask('id 123456789'))).toBe('id <SSN>')
    expect(runSync(compile({ builtins: ['CaSin', 'Ssn'] }).mask('id 123456789'))).toBe('id <CA_SIN>')
  })
})

describe('configured patterns', () => {
  test('match anywhere, and are case-sensitive by default', () => {
    expect(runSync(compile({ matches: ['secret', '(?i)hush'] }).mask('secrets Secret HUSH'))).toBe('<masked>s Secret <masked>')
  })

  test('never match the empty string', () => {
    expect(runSync(compile({ matches: ['x*'] }).mask('abxx'))).toBe('ab<masked>')
  })

  test('with overlapping hits are masked once', () => {
    expect(runSync(compile({ matches: ['abc', 'cde'] }).mask('xabcdex'))).toBe('x<masked>x')
  })

  test('that are invalid are named in the error', () => {
    expect(compilePatterns({ matches: ['(?=a)'] })).toMatch(/^pattern "\(\?=a\)": /)
  })
})

describe('masking JSON replaces', () => {
  const patterns = compile({ builtins: ['Ssn'], matches: ['secret'] })
  test.each([
    ['matches in strings', '{"a":"the secret","b":["123-45-6789",{"c":"x"}]}', '{"a":"the <masked>","b":["<SSN>",{"c":"x"}]}'],
    ['matches in escaped strings', String.raw`{"a":"se\u0063ret"}`, '{"a":"<masked>"}'],
    ['matches in numbers', '{"ssn":123456789,"n":1}', '{"ssn":"<SSN>","n":1}'],
    ['matches in text that is not JSON', 'secret {', '<masked> {'],
  ])('%s', (_, text, masked) => {
    expect(runSync(patterns.maskJson(text))).toBe(masked)
  })

  test('nothing without a match, and keeps the bytes', () => {
    expect(runSync(patterns.maskJson('{ "a" : 12345678901234567890 }'))).toBe('{ "a" : 12345678901234567890 }')
  })
})
