import { afterEach, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { issuedSecrets } from '../../runtime/issued-secrets.ts'
import { KnownSecrets } from './known-secrets.ts'
import { isSensitiveHeader, redactText, redactValue, setKnownSecrets } from './redact.ts'

afterEach(() => setKnownSecrets({ secrets: new Map() }))

const knowing = (...entries: string[]): KnownSecrets => {
  const known = new KnownSecrets()
  known.set({ secrets: new Map([['ns/s', { data: Object.fromEntries(entries.map((entry, i) => [`entry-${i}`, entry])) }]]) })
  return known
}

describe('known secrets', () => {
  const secret = fc.string({ unit: 'grapheme', minLength: 8, maxLength: 60 }).filter((text) => text.trim().length >= 8 && !/[\n{[<>]/.test(text))
  const around = fc.string({ unit: 'grapheme', maxLength: 40 })

  test('are in no text, as they are, as JSON and in URLs, wherever they begin', () => {
    fc.assert(
      fc.property(fc.array(secret, { minLength: 1, maxLength: 5 }), around, around, (secrets, before, after) => {
        const known = knowing(...secrets)
        for (const value of secrets.map((one) => one.trim()))
          for (const form of [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)])
            expect(known.redact(`${before}${form}${after}`)).not.toContain(value)
      }),
    )
  })

  test('are found in base64 of a longer text at each offset', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme-ascii', minLength: 12, maxLength: 40 }), around, (text, before) => {
        fc.pre(text.trim() === text && !/^[{[]/.test(text))
        const known = knowing(text)
        for (const encoding of ['base64', 'base64url'] as const) {
          const encoded = Buffer.from(`${before}:${text}`).toString(encoding)
          expect(known.redact(`authorization failed: ${encoded}`)).not.toBe(`authorization failed: ${encoded}`)
        }
      }),
    )
  })

  test('leave texts without them unchanged', () => {
    const known = knowing('correct-horse-battery')
    fc.assert(fc.property(fc.string({ maxLength: 200 }), (text) => expect(known.redact(text)).toBe(text)))
    expect(known.redact('correct-horse')).toBe('correct-horse')
  })

  test('are redacted with the longest value first, each time, and for the newest Secrets only', () => {
    const known = knowing('abcdefgh', 'abcdefgh-and-more')
    expect(known.redact('abcdefgh-and-more abcdefgh x')).toBe('<redacted> <redacted> x')
    known.set({ secrets: new Map([['ns/s', { data: { token: '12345678' } }]]) })
    expect(known.redact('abcdefgh 12345678')).toBe('abcdefgh <redacted>')
  })

  test('are the secret members of JSON, and lines and values of files, but not names, certificates and short values', () => {
    const account = JSON.stringify({ type: 'service_account', client_email: 'proxy@project.example', private_key: 'line-one\nline-two', key: 'sk-aaaaaaaa' })
    const known = new KnownSecrets()
    const data = {
      'account.json': account,
      username: 'administrator',
      '.htpasswd': 'ann:$apr1$hash-of-ann\nbob:$apr1$hash-of-bob',
      'tls.crt': 'certificate-text',
      pin: '1234',
    }
    known.set({ secrets: new Map([['ns/s', { data, privateKey: 'private-key-text' }]]) })
    const texts = ['sk-aaaaaaaa', 'line-one\\nline-two', '$apr1$hash-of-bob', 'private-key-text']
    for (const text of texts) expect([text, known.redact(`a ${text} b`)]).toEqual([text, 'a <redacted> b'])
    for (const text of ['proxy@project.example', 'service_account', 'administrator', 'certificate-text', '1234']) expect(known.redact(text)).toBe(text)
  })

  test('of the process stay known, however many tokens of users are issued', () => {
    issuedSecrets.add('password-of-the-store')
    redactText('a text in between')
    for (let user = 0; user < 5000; user++) {
      issuedSecrets.add(`token-of-user-${user}`, 'users')
      if (user % 700 === 0) expect(redactText(`token-of-user-${user} password-of-the-store`)).toBe('<redacted> <redacted>')
    }
    expect(redactText('password-of-the-store token-of-user-4999 token-of-user-4001')).toBe('<redacted> <redacted> <redacted>')
    expect(redactText('token-of-user-1')).toBe('token-of-user-1')
  })

  test('cost one pass over a text, however many there are', () => {
    const text = 'GET /inventory/items?page=2 HTTP/1.1 from 192.0.2.17, user agent Mozilla/5.0 '.repeat(4)
    const cost = (count: number): number => {
      const known = knowing(...Array.from({ length: count }, (_, i) => `secret-${i * 7919}-of-a-backend`))
      known.redact(text)
      const times = Array.from({ length: 7 }, () => {
        const start = performance.now()
        for (let i = 0; i < 300; i++) known.redact(text)
        return performance.now() - start
      })
      return Math.min(...times)
    }
    // A search for each value would take 200 times as long.
    expect(cost(2000)).toBeLessThan(cost(10) * 40)
  })
})

const credentialHeaders =
  'Authorization proxy-authorization x-authorization Cookie set-cookie x-api-key api-key x-goog-api-key ocp-apim-subscription-key x-auth-token x-access-token private-token x-vault-token x-amz-security-token x-goog-iap-jwt-assertion cf-access-jwt-assertion mcp-session-id x-session-id x-client-secret x-password x-credential x-functions-key apikey x_api_key authorization2'
test.each(credentialHeaders.split(' '))('the header %s is a credential', (name) => {
  expect(isSensitiveHeader(name)).toBe(true)
})

test.each([
  'host',
  'accept',
  'user-agent',
  'x-request-id',
  'content-type',
  'x-forwarded-for',
  'etag',
  'x-user',
  'idempotency',
  'keep-alive',
  'idempotency-key',
  'x-ratelimit-remaining-tokens',
  'anthropic-ratelimit-tokens-reset',
  'monkey',
  'www-authenticate',
])('the header %s is no credential', (name) => {
  expect(isSensitiveHeader(name)).toBe(false)
})

test.each([
  'key',
  'api_key',
  'api-key',
  'apikey',
  'access_token',
  'refresh_token',
  'id_token',
  'token',
  'sig',
  'X-Amz-Signature',
  'X-Goog-Signature',
  'client_secret',
  'password',
  'code',
])('the value of the query key %s is redacted, and others are not', (name) => {
  for (const text of [`/a?${name}=val-ue%2F1&page=2`, `/a?page=2&${name}=val-ue%2F1`, `https://h.example/?page=2;${name}=val-ue%2F1#page=2`]) {
    expect(redactValue(text)).toBe(text.replace('val-ue%2F1', '<redacted>'))
    expect(redactText(text)).toBe(text.replace('val-ue%2F1', '<redacted>'))
  }
  expect(redactValue(`/a?not${name}=1&page=2`)).toBe(`/a?not${name}=1&page=2`)
  // Servers decode names of keys.
  const encode = (text: string): string => text.replaceAll(/[^]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)
  for (const spelled of [encode(name), encode(name).toUpperCase(), name.replaceAll(/[-_]/g, encode), `${encode(name.slice(0, 1))}${name.slice(1)}`])
    expect(redactValue(`/a?page=2&${spelled}=value&b=1`)).toBe(`/a?page=2&${spelled}=<redacted>&b=1`)
})
