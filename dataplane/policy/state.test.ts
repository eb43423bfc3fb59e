import { describe, expect, test } from '@jest/globals'
import type { Secret } from '#gen/config/types.ts'
import { KeptState, selectSecrets } from './state.ts'

const secret = (key: string, type: Secret['type'] = 'opaque'): [string, Secret] => [key, { key, type }]

describe('the kept state of a section', () => {
  const section = { requests: 1 }

  test('is kept while the section and its inputs are the same objects', () => {
    const kept = new KeptState()
    const [first, second] = [{}, {}]
    expect(kept.get(section, [first], () => 1)).toBe(1)
    expect(kept.get(section, [first], () => 2)).toBe(1)
    expect(kept.get(section, [second], () => 3)).toBe(3)
    expect(kept.get(section, [second, undefined], () => 4)).toBe(4)
  })

  test('is not shared with an equal section', () => {
    const kept = new KeptState()
    expect([kept.get(section, [], () => 1), kept.get({ ...section }, [], () => 2), kept.get(section, [], () => 3)]).toEqual([1, 2, 1])
  })
})

describe('Secrets that policies read', () => {
  const [a, b, certificate] = [secret('a'), secret('b'), secret('c', 'tls')]
  const before = selectSecrets(new Map(), new Map([a, b, certificate]))

  test('are those with credentials', () => expect([...before.keys()]).toEqual(['a', 'b']))

  test.each<[string, [string, Secret][], boolean]>([
    ['a new certificate', [a, b, certificate, secret('d', 'ca')], true],
    ['a removed certificate', [a, b], true],
    ['a new credential', [a, b, secret('d')], false],
    ['a removed credential', [a, certificate], false],
    ['a changed credential', [a, secret('b'), certificate], false],
  ])('are the same object after %s: %j', (_, secrets, isSame) => expect(selectSecrets(before, new Map(secrets)) === before).toBe(isSame))
})
