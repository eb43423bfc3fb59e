import { createHash } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { readApiKeyEntry } from './api-key.ts'
import { readHtpasswdLine } from './htpasswd.ts'
import { findKeySetProblem } from './key-set.ts'

describe('readApiKeyEntry', () => {
  const hex = 'AB'.repeat(32)
  test.each<[string, string, object]>([
    ...['k\n', 'k\r\n', ' k ', '\ufeffk', '{"key":" k\\n"}', '\n{"key":"k"}\n'].map((value): [string, string, object] => [
      `white space around a key: ${JSON.stringify(value)}`,
      value,
      { key: 'k', metadata: {} },
    ]),
    ...['a b', 'a\nb', 'a\tb', 'a\0b', '{"key":"a b"}'].map((value): [string, string, object] => [
      `white space inside a key: ${JSON.stringify(value)}`,
      value,
      { problem: 'has a key with white space or control characters inside' },
    ]),
    ...['', '\n'].flatMap((text) =>
      ['toLowerCase', 'toUpperCase'].map((change): [string, string, object] => [
        `the digest of ${JSON.stringify(text)}, ${change}`,
        JSON.stringify({ keyHash: `sha256:${createHash('sha256').update(text).digest('hex')[change as 'toLowerCase']()}` }),
        { problem: 'has the keyHash of an empty key' },
      ]),
    ),
    ['an empty key in an object', '{"key":" "}', { problem: 'has a key that is not a string, or an empty one' }],
    ['a JSON object', '{"key":"k","metadata":{"group":"a"}}', { key: 'k', metadata: { group: 'a' } }],
    ['a hash', `{"keyHash":"sha256:${hex}"}`, { keyHash: hex.toLowerCase(), metadata: {} }],
    ['a time of expiry', '{"key":"k","expires":"2027-01-31T01:00:00.5+01:00"}', { key: 'k', metadata: {}, expiresMs: Date.UTC(2027, 0, 31, 0, 0, 0, 500) }],
    ...['tomorrow', '2027-01-31', '2027-02-30T00:00:00Z', '2027-01-31T00:00:00', '2027-01-31T25:00:00Z', ''].map((expires): [string, string, object] => [
      `the expires "${expires}"`,
      JSON.stringify({ key: 'k', expires }),
      { problem: 'has an expires that is not a time such as 2027-01-31T00:00:00Z' },
    ]),
    ['an expires that is a number', '{"key":"k","expires":1}', { problem: 'has an expires that is not a time such as 2027-01-31T00:00:00Z' }],
    ['an empty value', '  ', { problem: 'is empty' }],
    ['broken JSON', '{"key":', { problem: 'starts with { but is not JSON' }],
    ['neither key nor hash', '{}', { problem: 'needs exactly one of key and keyHash' }],
    ['both key and hash', `{"key":"k","keyHash":"sha256:${hex}"}`, { problem: 'needs exactly one of key and keyHash' }],
    ['a key that is a number', '{"key":1}', { problem: 'has a key that is not a string, or an empty one' }],
    ['a hash that is too short', '{"keyHash":"sha256:ab"}', { problem: 'has a keyHash that is not sha256: and 64 hex digits' }],
    ['metadata that is a list', '{"key":"k","metadata":[]}', { problem: 'has metadata that is not an object' }],
  ])('accepts or rejects %s', (_, value, expected) => expect(readApiKeyEntry(value)).toEqual(expected))
})

describe('readHtpasswdLine', () => {
  const apr1 = '$apr1$salt$0123456789012345678901'
  test.each<[string, string, object | undefined]>([
    ['a user', `ann:${apr1}`, { username: 'ann', hash: apr1 }],
    ['a user with a comment at the end', `ann:${apr1}:comment`, { username: 'ann', hash: apr1 }],
    ['a comment', ' # ann', undefined],
    ['an empty line', ' ', undefined],
    ['a line without colon', 'ann', { problem: 'is not user:hash' }],
    ['a raw password', 'ann:secret', { problem: 'has a hash of no known format: use bcrypt (cost 4 to 16), apr1, {SHA} or crypt' }],
    [
      'a bcrypt hash that takes minutes',
      `ann:$2y$20$${'a'.repeat(53)}`,
      { problem: 'has a hash of no known format: use bcrypt (cost 4 to 16), apr1, {SHA} or crypt' },
    ],
  ])('accepts or rejects %s', (_, line, expected) => expect(readHtpasswdLine(line)).toEqual(expected))
})

describe('findKeySetProblem', () => {
  const set = (...keys: unknown[]): string => JSON.stringify({ keys })
  const good = { kty: 'OKP', crv: 'Ed25519', kid: 'a', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
  const rejected = (problem: string): object => ({ problem: `${problem}; all its tokens are rejected`, isUsable: false })
  const ignored = (problem: string): object => ({ problem: `has keys that are ignored: ${problem}; tokens of its other keys are accepted`, isUsable: true })
  test.each<[string, string, object | undefined]>([
    ['usable keys, and one for encryption', set(good, { kty: 'OKP', crv: 'X25519', use: 'enc' }), undefined],
    ['a set without keys', set(), rejected('has no key that verifies signatures')],
    ['text that is not JSON', 'garbage', rejected('is not JSON')],
    ...['[]', 'null', '1', '{"keys":{}}'].map((text): [string, string, object] => [text, text, rejected('is not a JSON Web Key Set: it has no list keys')]),
    [
      'a shared secret only',
      set({ kty: 'oct' }),
      rejected(`has no key that verifies signatures (keys.0 is of type oct; usable are RSA, EC P-256, EC P-384, OKP Ed25519)`),
    ],
    [
      'a type that is not a word',
      set({ kty: '; fix "\n' }, good),
      ignored(`keys.0 is of type "; fix \\"\\n"; usable are RSA, EC P-256, EC P-384, OKP Ed25519`),
    ],
    ['many keys that are none', set(good, 1, 2, 3, 4, 5), ignored('keys.1 is not an object, keys.2 is not an object, keys.3 is not an object, and 2 more')],
  ])('accepts or rejects %s', (_, text, problem) => expect(findKeySetProblem(text)).toEqual(problem))
})
