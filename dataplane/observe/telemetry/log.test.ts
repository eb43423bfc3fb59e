import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { inspect } from 'node:util'
import { createLogging, parseLevels, type LogFormat, type Logger } from './log.ts'
import { isSensitiveName } from '#api/secret-fields.ts'
import { Redacted, redactText } from './redact.ts'
import { formatTime } from '../../runtime/time.ts'
import type { LineWriter } from './writer.ts'

const AT = Date.UTC(2026, 0, 2, 3, 4, 5) + 6.789

function capture(
  format: LogFormat,
  level?: string,
): { lines: string[]; logger: (scope: string) => Logger; setLevel: (spec: string) => void; reset: () => void } {
  const lines: string[] = []
  const writer: LineWriter = { dropped: 0, write: (line) => lines.push(line) > 0, flush: () => Promise.resolve(), flushSync: () => undefined }
  return { lines, ...createLogging({ writer, format, level, now: () => AT }) }
}

const TEXT = '2026-01-02T03:04:05.006789Z\tinfo\tconfig\t'
const lines: Record<string, { message: string; fields?: Record<string, unknown>; text: string; json: string }> = {
  'a plain message': { message: 'started', text: 'started', json: '"msg":"started"' },
  'fields follow, numbers bare, texts with spaces quoted': {
    message: 'applied',
    fields: { version: 3, source: 'a b', kind: 'route', empty: '' },
    text: 'applied version=3 source="a b" kind=route empty=""',
    json: '"msg":"applied","version":3,"source":"a b","kind":"route","empty":""',
  },
  'absent fields are left out': { message: 'x', fields: { a: undefined, b: null, c: false }, text: 'x c=false', json: '"msg":"x","c":false' },
  'an error shows its chain of causes': {
    message: 'nack',
    fields: { error: new Error('bad route', { cause: new Error('matches[0].path: empty') }) },
    text: 'nack error="bad route: matches[0].path: empty"',
    json: '"msg":"nack","error":"bad route: matches[0].path: empty"',
  },
  'line breaks cannot start a new line': { message: 'a\nb\u001b[0m', text: 'a\\u000ab\\u001b[0m', json: '"msg":"a\\nb\\u001b[0m"' },
  'structures are JSON, their secrets hidden': {
    message: 'x',
    fields: { at: { key: 'a', password: 'hunter2' } },
    text: 'x at="{\\"key\\":\\"a\\",\\"password\\":\\"<redacted>\\"}"',
    json: '"msg":"x","at":{"key":"a","password":"<redacted>"}',
  },
}

describe('log lines', () => {
  test.each(Object.entries(lines))('text: %s', (_name, { message, fields, text }) => {
    const log = capture('text')
    log.logger('config').info(message, fields)
    expect(log.lines).toEqual([`${TEXT}${text}\n`])
  })

  test.each(Object.entries(lines))('json: %s', (_name, { message, fields, json }) => {
    const log = capture('json')
    log.logger('config').info(message, fields)
    expect(log.lines).toEqual([`{"level":"info","time":"2026-01-02T03:04:05.006789Z","scope":"config",${json}}\n`])
    expect(() => JSON.parse(log.lines[0] ?? '') as unknown).not.toThrow()
  })

  test('time keeps microseconds over a change of second', () => {
    expect([0, 999.9999, 1000, 1_700_000_000_123.456].map(formatTime)).toEqual([
      '1970-01-01T00:00:00.000000Z',
      '1970-01-01T00:00:00.999999Z',
      '1970-01-01T00:00:01.000000Z',
      '2023-11-14T22:13:20.123456Z',
    ])
  })
})

describe('log levels', () => {
  test.each([
    ['info', 'config', ['error', 'warn', 'info']],
    ['off', 'config', []],
    ['debug', 'config', ['error', 'warn', 'info', 'debug']],
    ['config=trace', 'config', ['error', 'warn', 'info', 'debug', 'trace']],
    ['config=trace', 'upstream', ['error', 'warn', 'info']],
    ['error,config=debug', 'config/stream', ['error', 'warn', 'info', 'debug']],
    ['config=debug,config/stream=warn', 'config/stream', ['error', 'warn']],
    [' WARN , config = info ', 'configuration', ['error', 'warn']],
  ])('%j enables for scope %s the levels %j', (spec, scope, expected) => {
    const log = capture('text', spec)
    const logger = log.logger(scope)
    for (const level of ['error', 'warn', 'info', 'debug', 'trace'] as const) logger[level]('x', { code: 'PX4012' })
    expect(log.lines.map((line) => line.split('\t')[1])).toEqual(expected)
  })

  test.each(['', 'loud', 'config=', 'config=loud', '=info', 'a=b=c', 'info,,debug', 'a b=info'])('%j is rejected with the name of the invalid part', (spec) => {
    expect(() => parseLevels(spec)).toThrow(/^bad log level ".*": want one of off, error, warn, info, debug, trace/)
  })

  test('the error at startup names the setting', () => {
    expect(() => capture('text', 'loud')).toThrow(/^PROXY_LOG or config\.logging\.level: bad log level "loud": want one of /)
  })

  test('a new level applies to existing loggers, and reset restores the first', () => {
    const log = capture('text', 'warn')
    const logger = log.logger('config')
    log.setLevel('config=debug')
    expect(logger.isEnabled('debug')).toBe(true)
    log.reset()
    expect(logger.isEnabled('info')).toBe(false)
    expect(logger.isEnabled('warn')).toBe(true)
  })
})

describe('secrets', () => {
  const secrets = fc.string({ minLength: 12, maxLength: 40, unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789'.split('')) })

  test('a Redacted value is never printed', () => {
    fc.assert(
      fc.property(secrets, (value) => {
        const secret = new Redacted(value)
        const log = capture('text')
        log.logger('x').info(`with ${String(secret)}`, { secret, nested: { deep: [secret] }, error: new Error(`failed for ${String(secret)}`) })
        const seen = [log.lines.join(''), JSON.stringify({ secret }), inspect({ secret }, { depth: 9, showHidden: true }), String(secret)].join('')
        return !seen.includes(value) && secret.reveal() === value
      }),
    )
  })

  test('credentials in texts, errors and sensitive fields are never printed', () => {
    const shapes = fc.constantFrom<(value: string) => { message: string; fields: Record<string, unknown> }>(
      (value) => ({ message: `authorization: Bearer ${value}`, fields: {} }),
      (value) => ({ message: 'x', fields: { error: new Error(`GET https://bob:${value}@host/ failed`) } }),
      (value) => ({ message: 'x', fields: { error: new Error('outer', { cause: new Error(`Basic ${value}==`) }) } }),
      (value) => ({ message: `-----BEGIN PRIVATE KEY-----\n${value}\n-----END PRIVATE KEY-----`, fields: {} }),
      (value) => ({ message: 'x', fields: { pem: `-----BEGIN RSA PRIVATE KEY-----\n${value}` } }),
      (value) => ({ message: 'x', fields: { config: { tls: { privateKey: value }, list: [{ client_secret: value }] } } }),
      (value) => ({ message: 'x', fields: { apiKey: value, 'session-token': value } }),
    )
    fc.assert(
      fc.property(secrets, shapes, fc.constantFrom<LogFormat>('text', 'json'), (value, shape, format) => {
        const { message, fields } = shape(value)
        const log = capture(format)
        log.logger('x').error(message, { code: 'PX4012', ...fields })
        return log.lines.length === 1 && !log.lines.join('').includes(value)
      }),
    )
  })

  test.each([
    ['password', true],
    ['clientSecret', true],
    ['client_secret', true],
    ['X-API-Key', true],
    ['accessKey', true],
    ['token', true],
    ['key', false],
    ['tokens', false],
    ['gen_ai.usage.input_tokens', false],
    ['keyboard', false],
  ])('the field name %s is sensitive: %s', (name, expected) => {
    expect(isSensitiveName(name)).toBe(expected)
  })

  test('ordinary texts are not redacted', () => {
    for (const text of [
      'basic authentication failure: no basic authentication credentials found',
      'basic auth is on',
      'GET http://a.example/b?c=d@e',
      'bearer of news',
      '-----BEGIN CERTIFICATE-----\nMII',
    ])
      expect(redactText(text)).toBe(text)
  })
})
