import { describe, expect, test } from '@jest/globals'
import { readApiKeyEntry } from './api-key.ts'
import { readHtpasswdLine } from './htpasswd.ts'
import { findKeySetProblem } from './key-set.ts'

describe('an entry with an API key', () => {
  const hex = 'AB'.repeat(32)
  test.each<[string, string, object]>([
    ['a raw key, white space and all', ' k ', { key: ' k ', metadata: {} }],
    ['JSON', '{"key":"k","metadata":{"group":"a"}}', { key: 'k', metadata: { group: 'a' } }],
    ['a hash', `{"keyHash":"sha256:${hex}"}`, { keyHash: hex.toLowerCase(), metadata: {} }],
    ['nothing', '  ', { problem: 'is empty' }],
    ['broken JSON', '{"key":', { problem: 'starts with { but is not JSON' }],
    ['neither key nor hash', '{}', { problem: 'needs exactly one of key and keyHash' }],
    ['both', `{"key":"k","keyHash":"sha256:${hex}"}`, { problem: 'needs exactly one of key and keyHash' }],
    ['a number', '{"key":1}', { problem: 'has a key that is not a string, or an empty one' }],
    ['a short hash', '{"keyHash":"sha256:ab"}', { problem: 'has a keyHash that is not sha256: and 64 hex digits' }],
    ['metadata that is a list', '{"key":"k","metadata":[]}', { problem: 'has metadata that is not an object' }],
  ])('%s', (_, value, expected) => expect(readApiKeyEntry(value)).toEqual(expected))
})

describe('a line of an htpasswd file', () => {
  const apr1 = '$apr1$salt$0123456789012345678901'
  test.each<[string, string, object | undefined]>([
    ['a user', `ann:${apr1}`, { username: 'ann', hash: apr1 }],
    ['a user with what htpasswd leaves at the end', `ann:${apr1}:comment`, { username: 'ann', hash: apr1 }],
    ['a comment', ' # ann', undefined],
    ['an empty line', ' ', undefined],
    ['no colon', 'ann', { problem: 'is not user:hash' }],
    ['a raw password', 'ann:secret', { problem: 'has a hash of no known format: use bcrypt (cost 4 to 16), apr1, {SHA} or crypt' }],
    [
      'bcrypt that takes minutes',
      `ann:$2y$20$${'a'.repeat(53)}`,
      { problem: 'has a hash of no known format: use bcrypt (cost 4 to 16), apr1, {SHA} or crypt' },
    ],
  ])('%s', (_, line, expected) => expect(readHtpasswdLine(line)).toEqual(expected))
})

describe('a key set', () => {
  const set = (...keys: unknown[]): string => JSON.stringify({ keys })
  test.each<[string, string, string | undefined]>([
    ['of usable keys', set({ kty: 'RSA', kid: 'a' }, { kty: 'EC', crv: 'P-256', kid: 'b' }, { kty: 'OKP', crv: 'X25519', use: 'enc' }), undefined],
    ['without keys', set(), undefined],
    ['no JSON', 'garbage', 'is not JSON'],
    ['no set', '[]', 'is not a JSON Web Key Set: it has no list keys'],
    ['null', 'null', 'is not a JSON Web Key Set: it has no list keys'],
    ['with something else in it', set(1), 'keys.0 is not an object'],
    ['with a nameless key', set({ kty: 'RSA', kid: 'a' }, { kty: 'RSA' }), 'keys.1 has no kid'],
    ['with a shared secret', set({ kty: 'oct', kid: 'a' }), 'keys.0 is of type oct; usable are RSA, EC P-256, EC P-384, OKP Ed25519'],
    ['with another curve', set({ kty: 'EC', crv: 'P-521', kid: 'a' }), 'keys.0 is of type EC P-521; usable are RSA, EC P-256, EC P-384, OKP Ed25519'],
  ])('%s', (_, text, problem) => expect(findKeySetProblem(text)).toBe(problem))
})
