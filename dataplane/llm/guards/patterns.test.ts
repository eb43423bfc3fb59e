import { describe, expect, test } from '@jest/globals'
import type { Regex } from '#gen/config/types.ts'
import { compilePatterns, type Patterns } from './patterns.ts'

function compile(config: Pick<Regex, 'matches' | 'builtins'>): Patterns {
  const patterns = compilePatterns(config)
  if (typeof patterns === 'string') throw new Error(patterns)
  return patterns
}

const mask = (builtin: NonNullable<Regex['builtins']>[number], text: string): string => compile({ builtins: [builtin] }).mask(text)

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
  ] as const)('%s: %s', (builtin, text, masked) => {
    expect(mask(builtin, text)).toBe(masked)
  })

  test('two that find the same digits are one hit, named by the first', () => {
    expect(compile({ builtins: ['Ssn', 'CaSin'] }).mask('id 123456789')).toBe('id <SSN>')
    expect(compile({ builtins: ['CaSin', 'Ssn'] }).mask('id 123456789')).toBe('id <CA_SIN>')
  })
})

describe('own patterns', () => {
  test('are masked wherever they are, with regard to case unless they say otherwise', () => {
    expect(compile({ matches: ['secret', '(?i)hush'] }).mask('secrets Secret HUSH')).toBe('<masked>s Secret <masked>')
  })

  test('nothing is a match of nothing', () => {
    expect(compile({ matches: ['x*'] }).mask('abxx')).toBe('ab<masked>')
  })

  test('hits that overlap are one', () => {
    expect(compile({ matches: ['abc', 'cde'] }).mask('xabcdex')).toBe('x<masked>x')
  })

  test('one that is no pattern is named', () => {
    expect(compilePatterns({ matches: ['(?=a)'] })).toMatch(/^pattern "\(\?=a\)": /)
  })
})

describe('JSON', () => {
  const patterns = compile({ builtins: ['Ssn'], matches: ['secret'] })
  test.each([
    ['its strings', '{"a":"the secret","b":["123-45-6789",{"c":"x"}]}', '{"a":"the <masked>","b":["<SSN>",{"c":"x"}]}'],
    ['what an escape hides', String.raw`{"a":"se\u0063ret"}`, '{"a":"<masked>"}'],
    ['its numbers', '{"ssn":123456789,"n":1}', '{"ssn":"<SSN>","n":1}'],
    ['text that is none', 'secret {', '<masked> {'],
  ])('%s', (_, text, masked) => {
    expect(patterns.maskJson(text)).toBe(masked)
  })

  test('what holds nothing keeps its bytes', () => {
    expect(patterns.maskJson('{ "a" : 12345678901234567890 }')).toBe('{ "a" : 12345678901234567890 }')
  })
})
