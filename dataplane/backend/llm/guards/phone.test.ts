import { describe, expect, test } from '@jest/globals'
import { isValidPhoneNumber } from 'libphonenumber-js/max'
import { fc } from '#api/property-testing.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { findPhones } from './phone.ts'

function find(text: string): string[] {
  const found: string[] = []
  runSync(findPhones(text, 0, (start, end) => found.push(text.slice(start, end)) > 0))
  return found
}

/** Judges every group of digits at the end of every candidate by libphonenumber, in every region. */
function findSlowly(text: string): string[] {
  const found: string[] = []
  for (let at = 0; at < text.length; at++) {
    const candidate = /^[+(]{0,2}\d[\d ().-]{6,30}/.exec(text.slice(at))?.[0]
    if (candidate === undefined || /\d/.test(text[at - 1] ?? '')) continue
    for (let number = candidate.replace(/\D+$/, ''); number.length >= 7; number = number.replace(/\D*\d+$/, '').replace(/\D+$/, '')) {
      const judged = number
      if (!(['US', 'GB', 'DE', 'IL', 'IN', 'CA', 'BR'] as const).some((region) => isValidPhoneNumber(judged, region))) continue
      found.push(number)
      at += number.length - 1
      break
    }
  }
  return found
}

describe('phone numbers', () => {
  test.each([
    ['call +1 650 253 0000, 020 7946 0958 or (11) 96123-4567', ['+1 650 253 0000', '020 7946 0958', '(11) 96123-4567']],
    ['from the US: 011 44 20 7946 0958; from Israel 012 49 30 123456', ['011 44 20 7946 0958', '012 49 30 123456']],
    ['(+44 20 7946 0958)', ['+44 20 7946 0958']],
    ['++1 650 253 0000', ['+1 650 253 0000']],
    ['+800 1234 5678', ['+800 1234 5678']],
    ['10.1.2.3 - - [22/Nov/2026:23:14:01] 200 5321', []],
  ])('in %s are found', (text, expected) => {
    expect(find(text)).toEqual(expected)
  })

  test('of any form are those that libphonenumber finds valid', () => {
    const codes =
      '0,1,2,3,5,9,+,+1,+44,+49,00,011,0044,0049,020,650,253,0000,7946,0958,030,1234,90,55,11,012,91,98765,43210,972,0180020,800,+7 ,+800 ,+54 9 11 '
    const unit = fc.constantFrom(...`${codes},+95,0015,45,6789,(,), ,-,.,x`.split(','))
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 10 }), (pieces) => {
        expect(find(pieces.join(''))).toEqual(findSlowly(pieces.join('')))
      }),
      { numRuns: 1000 },
    )
  })

  const noise = (length: number, separator: string): string => {
    let [text, seed] = ['', 1]
    while (text.length < length) text += String((seed = (seed * 48_271) % 2_147_483_647) % 10) + separator
    return text
  }
  test.each<[string, (length: number) => string]>([
    ['ones', (length) => '1 '.repeat(length / 2)],
    ['single random digits', (length) => noise(length, ' ')],
    ['random digits after exit prefixes', (length) => noise(length, ' 0 0 ')],
    ['opening parentheses', (length) => '(1'.repeat(length / 2)],
    ['one long number', (length) => noise(length, '')],
  ])('are searched among %s in steps in proportion to the length of the text', (_, make) => {
    const countSteps = (length: number): number => {
      let steps = 1
      const work = findPhones(make(length), 0, () => true)
      while (work.next().done !== true) steps++
      return steps
    }
    countSteps(5000)
    const steps = countSteps(40_000)
    expect(steps / countSteps(10_000)).toBeLessThan(6)
    expect(steps).toBeLessThan(1000)
  })
})
