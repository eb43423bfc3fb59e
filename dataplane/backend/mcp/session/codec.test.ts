import { describe, expect, test } from '@jest/globals'
import { randomBytes, randomUUID } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import type { LinkState } from '../upstream/link.ts'
import { decodeSession, encodeSession } from './codec.ts'
import { readSessionKeys } from './keys.ts'
import before from './testdata/states-before.json' with { type: 'json' }
import { WaitingCalls } from './waiting.ts'

const key = Buffer.alloc(32, 1)
const other = Buffer.alloc(32, 2)
const links = new Map<string, LinkState>([
  ['a', { sessionId: 's-1', endpoint: '10.0.0.1:80', offers: 'tp', isMissing: false }],
  ['b.c', { sessionId: undefined, endpoint: undefined, offers: undefined, isMissing: true }],
])
const content = { links, principal: 'user' }

describe('session ids', () => {
  test('contain the state that another replica needs', () => expect(decodeSession([key], 'ns/b', encodeSession([key], 'ns/b', content))).toEqual(content))

  test('are encrypted, valid as header values, and unique', () => {
    const ids = [encodeSession([key], 'ns/b', content), encodeSession([key], 'ns/b', content)]
    expect(ids[0]).not.toBe(ids[1])
    for (const id of ids) {
      expect(id).toMatch(/^[A-Za-z0-9+/]+=*$/)
      expect(Buffer.from(id, 'base64').toString('latin1')).not.toContain('s-1')
    }
  })

  test('are invalid with another key or on another backend (row 23)', () => {
    const id = encodeSession([key], 'ns/b', content)
    expect([decodeSession([other], 'ns/b', id), decodeSession([key], 'ns/c', id), decodeSession([key], 'ns/b ', id)]).toEqual([undefined, undefined, undefined])
  })

  test('are decrypted with the previous key too, so that keys can be rotated', () => {
    const id = encodeSession([key], 'ns/b', content)
    expect(decodeSession([other, key], 'ns/b', id)?.links).toEqual(links)
    expect(decodeSession([other], 'ns/b', encodeSession([other, key], 'ns/b', content))?.links).toEqual(links)
  })

  test.each([
    ['with a key', [key]],
    ['without a key', []],
  ])('are invalid after any change of a character, %s', (_, keys) => {
    const id = encodeSession(keys, 'ns/b', content)
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_= '
    const isOther = (changed: string): boolean => {
      const decoded = decodeSession(keys, 'ns/b', changed)
      // Without a key nothing is authenticated, so a changed id may decode, but never to the same session.
      return keys.length > 0 ? decoded === undefined : decoded === undefined || Buffer.from(changed, 'base64url').toString('base64url') === changed
    }
    for (let at = 0; at < id.length; at++) {
      expect(isOther(id.slice(0, at) + id.slice(at + 1))).toBe(true)
      for (const letter of alphabet) if (letter !== id[at]) expect(isOther(id.slice(0, at) + letter + id.slice(at + 1))).toBe(true)
    }
    for (const extra of ['=', ' ', 'A', '\n', '.']) expect([isOther(id + extra), isOther(extra + id)]).toEqual([true, true])
  })

  test('are distinguished from other texts', () => {
    for (const id of ['', 'a', '====', Buffer.from('{}').toString('base64url'), Buffer.from('[]').toString('base64'), 'A'.repeat(100_000)])
      expect([decodeSession([key], 'ns/b', id), decodeSession([], 'ns/b', id)]).toEqual([undefined, undefined])
  })

  test('differ even if servers have no session ids', () => {
    const nameless = new Map([['a', { sessionId: undefined, endpoint: undefined, offers: undefined, isMissing: false }]])
    const nobody = { links: nameless, principal: undefined }
    expect(encodeSession([], 'ns/b', nobody)).not.toBe(encodeSession([], 'ns/b', nobody))
  })

  test.each(['s\r\nx-injected: 1', 'ü', ' ', ''])('that were forged with the session id %j of a target are invalid', (sessionId) => {
    const forged = new Map<string, LinkState>([['a', { sessionId, endpoint: undefined, offers: undefined, isMissing: false }]])
    expect(decodeSession([], 'ns/b', encodeSession([], 'ns/b', { links: forged, principal: undefined }))).toBeUndefined()
  })
})

describe('the length of session ids', () => {
  /** The ids of real servers: UUIDs. */
  const servers = (count: number, sessionId: (at: number) => string) =>
    new Map(
      Array.from({ length: count }, (_, at): [string, LinkState] => [
        `server-${at}`,
        { sessionId: sessionId(at), endpoint: `10.0.${at}.1:8080`, offers: 'tpr', isMissing: false },
      ]),
    )

  test('lets two gateways stand in series', () => {
    const inner = encodeSession([key], 'ns/inner', { links: servers(16, () => randomUUID()), principal: 'user' })
    expect(inner.length).toBeLessThan(1100)
    const outer = { links: servers(4, () => inner), principal: undefined }
    expect(decodeSession([key], 'ns/outer', encodeSession([key], 'ns/outer', outer))).toEqual(outer)
  })

  test('is limited by that of headers: a longer one fails with the target that needs most of it', () => {
    const random = (): string => randomBytes(3000).toString('base64url')
    const encode = (count: number) => () => encodeSession([key], 'ns/b', { links: servers(count, random), principal: undefined })
    expect(encode(2)().length).toBeLessThan(12 * 1024)
    expect(encode(4)).toThrow(/^the session id has \d+ characters, at most 12288 are sent/)
  })

  test('is limited when compressed content is read', () => {
    const bomb = Buffer.concat([Buffer.of(1), deflateRawSync(Buffer.alloc(1_000_000, 32))]).toString('base64url')
    expect(decodeSession([], 'ns/b', bomb)).toBeUndefined()
  })
})

describe('states that the version before made', () => {
  const old = Buffer.alloc(32, 7)
  const known = {
    links: new Map<string, LinkState>([
      ['a', { sessionId: 's-1', endpoint: '10.0.0.1:80', offers: 'tpr', isMissing: false }],
      ['b.c', { sessionId: undefined, endpoint: undefined, offers: undefined, isMissing: true }],
      ['modern', { sessionId: undefined, endpoint: '10.0.0.2:80', offers: 't', version: '2026-07-28', isMissing: false }],
    ]),
    principal: 'user',
    client: { capabilities: { elicitation: {} }, info: { name: 'c', version: '1' } },
  }

  test('are accepted: session ids', () => {
    expect(decodeSession([old], 'ns/b', before.session)).toEqual(known)
    expect(decodeSession([], 'ns/b', before.withoutKey)).toEqual(known)
    expect(decodeSession([old], 'ns/b', before.anonymous)?.principal).toBeUndefined()
    expect([decodeSession([key], 'ns/b', before.session), decodeSession([old], 'ns/c', before.session)]).toEqual([undefined, undefined])
  })

  test('are accepted: requestState', () => {
    const waiting = new WaitingCalls({ keys: [old] })
    const id = '6f1c1d0e-6a5b-4c3d-8e2f-0123456789ab'
    const where = { place: 'p', principal: undefined, credentials: '' }
    expect(waiting.take(before.requestState, where)).toEqual({ kind: 'lost', id, peer: undefined })
    expect(waiting.take(before.requestStateOfReplica, where)).toEqual({ kind: 'lost', id, peer: { host: '10.0.0.9', port: 15021 } })
  })
})

describe('SESSION_KEY', () => {
  const hex = key.toString('hex')
  test.each<[string, Record<string, string>, number]>([
    ['is absent', {}, 0],
    ['is empty', { SESSION_KEY: ' ' }, 0],
    ['has white space around it', { SESSION_KEY: ` ${hex}\n` }, 1],
    ['has a previous key', { SESSION_KEY: hex, SESSION_KEY_PREVIOUS: other.toString('hex') }, 2],
  ])('is read if it %s', (_, env, count) => expect(readSessionKeys(env)).toHaveLength(count))

  test.each([
    ['too short', hex.slice(2)],
    ['too long', `${hex}00`],
    ['no hexadecimal', 'z'.repeat(64)],
  ])('that is %s stops the process at start', (_, value) => {
    expect(() => readSessionKeys({ SESSION_KEY: value })).toThrow('SESSION_KEY is not 64 hexadecimal digits: make one with openssl rand -hex 32')
    expect(() => readSessionKeys({ SESSION_KEY: hex, SESSION_KEY_PREVIOUS: value })).toThrow('SESSION_KEY_PREVIOUS')
  })
})
