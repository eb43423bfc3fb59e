import { afterEach, describe, expect, test } from '@jest/globals'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { serveSockets } from '../../testing/socket-server.ts'
import { connectRedis, type RedisConnection } from './connection.ts'
import { redisMetrics } from './metrics.ts'
import { readRedisSettings, type RedisSettings } from './settings.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A server that answers each read with what `respond` returns; undefined: never. */
async function serve(respond: (request: string) => string | undefined): Promise<number> {
  const { port, close } = await serveSockets((socket) => {
    socket.on('data', (data) => {
      for (const command of data.toString('latin1').split(/(?=^\*\d+\r\n)/m)) {
        const response = respond(command)
        if (response !== undefined) socket.write(response)
      }
    })
  })
  closing.push(close)
  return port
}

function connect(port: number) {
  const settings = readRedisSettings({ url: `redis://127.0.0.1:${port}` })
  if (typeof settings === 'string') throw new Error(settings)
  const registry = createRegistry()
  const lines: unknown[][] = []
  const add =
    (level: string) =>
    (message: string, fields: object = {}): void =>
      void lines.push([level, message, fields])
  const log = { error: add('error'), warn: add('warn'), info: add('info'), debug: add('debug'), trace: add('trace'), isEnabled: () => true }
  const redis = connectRedis({ settings, log, registry })
  closing.push(() => void redis.close())
  const failed = () => redisMetrics(registry).commands.series('get', 'failed').value
  return { redis, lines, failed }
}

/** Reads until the connection is there. */
async function get(redis: RedisConnection, failed: () => number): Promise<Buffer | undefined | null> {
  for (;;) {
    const before = failed()
    const value = await redis.get('k', 100)
    if (failed() === before) return value
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

describe('a connection to Redis', () => {
  test.each([
    ['a value', '$5\r\nhello\r\n', Buffer.from('hello')],
    ['a missing value', '$0\r\n\r\n', undefined],
    ['a value that is too large', `$101\r\n${'a'.repeat(101)}\r\n`, undefined],
  ])('reads %s', async (_, response, expected) => {
    const port = await serve((request) => (request.includes('GETRANGE') ? response : '+OK\r\n'))
    const { redis, failed } = connect(port)
    expect(await get(redis, failed)).toEqual(expected)
  })

  test.each([
    ['an error', '-WRONGTYPE Operation against a key\r\n'],
    ['no Redis', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
    ['a length that is none', '$abc\r\n'],
  ])('counts %s as a failure and returns nothing', async (_, response) => {
    const port = await serve((request) => (request.includes('GETRANGE') ? response : '+OK\r\n'))
    const { redis, failed } = connect(port)
    let before = failed()
    while (failed() < before + 2) {
      expect(await redis.get('k', 100)).toBeNull()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    before = failed()
    expect(before).toBeGreaterThan(0)
  })

  test('does not wait for a server that hangs, and asks it no more for a while', async () => {
    let asked = 0
    const port = await serve((request) => (request.includes('GETRANGE') ? void asked++ : '+OK\r\n'))
    const { redis } = connect(port)
    while (asked === 0) {
      expect(await redis.get('k', 100)).toBeNull()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    expect(asked).toBe(1)
    for (let nth = 0; nth < 20; nth++) expect(await redis.get('k', 100)).toBeNull()
    expect(asked).toBe(1)
  })

  test('sends a script that the server does not know, and returns its result or error', async () => {
    const known = new Set<string>()
    const port = await serve((request) => {
      if (request.includes('EVALSHA')) return known.has('s') ? '*2\r\n:1\r\n$1\r\na\r\n' : '-NOSCRIPT No matching script\r\n'
      if (request.includes('EVAL')) {
        known.add('s')
        return '-ERR user_script:1: not a counter\r\n'
      }
      return '+OK\r\n'
    })
    const { redis } = connect(port)
    await redis.opened
    const script = { source: 'return 1', sha: 'f'.repeat(40) }
    expect(await redis.evaluate(script, ['k'], ['a'])).toEqual({ error: 'ERR user_script:1: not a counter', mayRun: false })
    expect(await redis.evaluate(script, ['k'], ['a'])).toEqual({ value: [1, Buffer.from('a')] })
  })

  test('says whether a script may run after its failure', async () => {
    const port = await serve((request) => (request.includes('EVALSHA') ? undefined : '+OK\r\n'))
    const { redis } = connect(port)
    await redis.opened
    const script = { source: 'return 1', sha: 'f'.repeat(40) }
    expect(await redis.evaluate(script, [], [])).toEqual({ error: 'Redis did not respond in time', mayRun: true })
    expect(await redis.evaluate(script, [], [])).toEqual({ error: 'Redis did not respond in time', mayRun: false })
    expect(await connect(1).redis.evaluate(script, [], [])).toEqual({ error: 'there is no connection to Redis', mayRun: false })
  })

  test('logs once that the server cannot be reached', async () => {
    const { redis, lines, failed } = connect(1)
    while (lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    redis.set('k', Buffer.from('a'), 1000)
    expect(await redis.get('k', 100)).toBeNull()
    expect(failed()).toBe(1)
    expect(lines).toEqual([['warn', 'Redis cannot be used', expect.objectContaining({ code: 'PX4036', server: '127.0.0.1:1' })]])
  })
})

describe('config.redis', () => {
  test('names a server, with TLS, user and database', () => {
    expect(readRedisSettings({ url: 'rediss://u%40:p@r.example/3', passwordFile: '/p' })).toEqual({
      host: 'r.example',
      port: 6379,
      database: 3,
      user: 'u@',
      password: 'p',
      passwordFile: '/p',
      isTls: true,
      caFile: undefined,
    } satisfies RedisSettings)
  })

  test.each([
    [{ url: 'http://a' }, /^config\.redis\.url is not the URL of Redis: give redis:/],
    [{ url: 'redis://:secret@' }, /^config\.redis\.url is not the URL/],
    [{ url: 'redis://a?x=secret' }, /is not the URL/],
    [{ url: 'redis://%zz@a' }, /malformed escape/],
    [{ url: 'redis://a/b' }, /has the database "b": give a number/],
    [{ url: 'redis://a', passwordFile: 'p' }, /^config\.redis\.passwordFile is "p": give an absolute path/],
    [{ url: 'redis://a', caFile: './c' }, /^config\.redis\.caFile is "\.\/c"/],
  ])('%j is invalid, and the message has no secret', (section, message) => {
    const problem = readRedisSettings(section)
    expect(problem).toMatch(message)
    expect(problem).not.toContain('secret')
  })
})
