import { createHash } from 'node:crypto'
import { describe, expect, jest, test } from '@jest/globals'
import type { BasicAuthentication, Secret } from '#gen/config/types.ts'
import type { ProxyError } from '../../request/exchange/error.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createPolicyState } from '../state.ts'
import { checkInThread } from './checks.ts'
import { verifyPassword } from './hashes.ts'
import { compileBasicAuthentication } from './index.ts'
import { createUserVerifier, readUsers, type Waiter } from './users.ts'
import { variables } from '../../request/exchange/variables.ts'

const bcrypt = 'bob:$2y$04$DSPzK1TY8K4zf9GNutemduhMRfnZ9Iz4TdfuKcKy/LtO3uiSTVsWi'
const sha = 'alice:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='
const secretOf = (data: Record<string, string>): Secret => ({ key: 'opaque/ns/users', type: 'opaque', data })
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
const check = async (password: string, hash: string): Promise<boolean> => verifyPassword(password, hash)

async function send(config: BasicAuthentication, authorization: string | string[] = [], secret?: Secret) {
  const state = { ...createPolicyState(), secrets: new Map(secret === undefined ? [] : [[secret.key, secret]]) }
  const prepare = (exchange: { request: { headers: { append(name: string, value: string): void } } }) => {
    for (const line of [authorization].flat()) exchange.request.headers.append('authorization', line)
  }
  const { exchange, response, isForwarded } = await mountPolicies([compileBasicAuthentication(config, state, check)], { prepare }).request('http://host/')
  return {
    status: response.status,
    text: await response.text(),
    challenge: response.headers.get('www-authenticate'),
    isForwarded,
    forwarded: exchange.request.headers.getAll('authorization'),
    user: variables.basicAuth.get(exchange),
  }
}

const refused = (text: string) => ({
  status: 401,
  text: `basic authentication failure: ${text}`,
  challenge: 'Basic realm="Restricted"',
  isForwarded: false,
  user: undefined,
})

describe('basic authentication', () => {
  test.each([
    ['bcrypt', 'bob'],
    ['SHA', 'alice'],
  ])('valid credentials (%s) are removed, and the user is passed on', async (_, username) => {
    const result = await send({ users: [bcrypt, sha] }, [basic(`${username}:secret`), 'Bearer x'])
    expect(result).toMatchObject({ status: 200, user: { username }, forwarded: ['Bearer x'] })
  })

  test.each([
    ['a wrong password', basic('bob:wrong'), 'invalid credentials'],
    ["another user's password", basic('eve:secret'), 'invalid credentials'],
    ['an empty password', basic('bob:'), 'invalid credentials'],
    ['a user named like a member of Object.prototype', basic('__proto__:secret'), 'invalid credentials'],
    ['no colon', basic('bobsecret'), 'invalid credentials'],
    ['a control character', basic('bob:secret\0'), 'invalid credentials'],
    ['bytes that are not UTF-8', `Basic ${Buffer.from('bob:\xff', 'latin1').toString('base64')}`, 'invalid credentials'],
    ['no base64', 'Basic ***', 'invalid credentials'],
    ['base64 with an invalid character', `${basic('bob:secret')}!`, 'invalid credentials'],
    ['no credentials after the scheme', 'Basic', 'invalid credentials'],
    ['two credentials', [basic('bob:secret'), basic('bob:secret')], 'invalid credentials'],
    ['another scheme', 'Bearer x', 'no basic authentication credentials found'],
    ['no header', [], 'no basic authentication credentials found'],
  ])('rejects %s', async (_, authorization, text) => {
    expect(await send({ users: [bcrypt, sha] }, authorization)).toMatchObject(refused(text))
  })

  test('admits requests without credentials in mode Optional, but none with invalid ones', async () => {
    const config: BasicAuthentication = { mode: 'Optional', users: [bcrypt] }
    expect(await send(config)).toMatchObject({ status: 200, user: undefined })
    expect(await send(config, basic('bob:wrong'))).toMatchObject(refused('invalid credentials'))
  })

  test('rejects an empty user or password, also if the file has the hash of it', async () => {
    const empty = `{SHA}${createHash('sha1').update('').digest('base64')}`
    for (const text of ['bob:', ':', ':secret', ''])
      expect([text, (await send({ users: [`bob:${empty}`, `:${empty}`, sha] }, basic(text))).status]).toEqual([text, 401])
  })

  test('quotes the realm in the challenge', async () => {
    expect((await send({ users: [bcrypt], realm: 'a "b"\\\r\nx-evil: 1' })).challenge).toBe(String.raw`Basic realm="a \"b\"\\??x-evil: 1"`)
  })
})

describe('users in a Secret', () => {
  const config: BasicAuthentication = { secretRef: { secret: 'opaque/ns/users' } }

  test('are read from the htpasswd file in its entry .htaccess', async () => {
    const secret = secretOf({ '.htaccess': `# users\r\n\r\nnonsense\nbob:raw\n${bcrypt}\r\n${sha}\n` })
    expect((await send(config, basic('bob:secret'), secret)).status).toBe(200)
    expect((await send(config, basic('bob:raw'), secret)).status).toBe(401)
  })

  test.each<[string, BasicAuthentication, Secret | undefined]>([
    ['the Secret is missing', config, undefined],
    ['the entry is missing', config, secretOf({ auth: bcrypt })],
    ['the reference is bad', { secretRef: { invalid: 'not found' } }, undefined],
    ['the Secret is missing, in mode Optional', { ...config, mode: 'Optional' }, undefined],
  ])('are missing, and all requests get 401: %s', async (_, section, secret) => {
    expect((await send(section, basic('bob:secret'), secret)).status).toBe(401)
    expect((await send(section, [], secret)).status).toBe(401)
  })

  test('apply as soon as the Secret changes', async () => {
    const state = createPolicyState()
    const sendWith = async (data: Record<string, string>) => {
      const policy = compileBasicAuthentication(config, { ...state, secrets: new Map([['opaque/ns/users', secretOf(data)]]) }, check)
      return (await mountPolicies([policy]).request('http://host/', { headers: { authorization: basic('bob:secret') } })).response.status
    }
    expect([await sendWith({ '.htaccess': bcrypt }), await sendWith({ '.htaccess': sha })]).toEqual([200, 401])
  })
})

const waiter: Waiter = { client: '192.0.2.1', onAbort: () => {} }

describe('verified credentials', () => {
  test('are checked once, also when they arrive concurrently, and wrong ones each time', async () => {
    const counted = jest.fn(check)
    const verify = createUserVerifier(readUsers([bcrypt]), counted)
    expect(await Promise.all([verify('bob', 'secret', waiter), verify('bob', 'secret', waiter)])).toEqual([true, true])
    expect(await verify('bob', 'secret', waiter)).toBe(true)
    expect(counted).toHaveBeenCalledTimes(1)
    expect([await verify('bob', 'wrong', waiter), await verify('bob', 'wrong', waiter)]).toEqual([false, false])
    expect(counted).toHaveBeenCalledTimes(3)
  })

  const cheap = 'eve:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='
  const costly = `zoe:${bcrypt.slice('bob:'.length).replace(/^(\$2[aby]\$)\d\d/, '$112')}`

  test.each([
    ['of an unknown user', 'nobody', ['costly']],
    ['of a user with the costliest hash', 'zoe', ['costly']],
    ['of a user with a cheaper hash', 'eve', ['cheap', 'costly']],
  ])('a failed check %s includes the costliest hash of the file', async (_, username, expected) => {
    const hashes: string[] = []
    const names = new Map([cheap, costly].map((line, index) => [line.slice(4), ['cheap', 'costly'][index] ?? '']))
    const verify = createUserVerifier(readUsers([cheap, bcrypt, costly]), (_password, hash) => {
      hashes.push(names.get(hash) ?? hash)
      return Promise.resolve(false)
    })
    expect(await verify(username, 'wrong', waiter)).toBe(false)
    expect(hashes).toEqual(expected)
  })

  test('a check is dropped when all clients that wait for it have disconnected', async () => {
    const signals: (AbortSignal | undefined)[] = []
    const verify = createUserVerifier(readUsers([bcrypt]), (_password, _hash, options) => {
      signals.push(options?.signal)
      return new Promise(() => {})
    })
    const leave: (() => void)[] = []
    const leaving: Waiter = { client: '192.0.2.1', onAbort: (callback) => void leave.push(callback) }
    for (let count = 0; count < 2; count++) void verify('bob', 'secret', leaving)
    leave[0]?.()
    expect(signals.map((signal) => signal?.aborted)).toEqual([false])
    leave[1]?.()
    expect(signals.map((signal) => signal?.aborted)).toEqual([true])
    void verify('bob', 'secret', leaving)
    expect(signals).toHaveLength(2)
  })

  test('clients of one IPv6 network count as one client', async () => {
    const clients = new Set<string | undefined>()
    const verify = createUserVerifier(readUsers([bcrypt]), (_password, _hash, options) => Promise.resolve(clients.add(options?.client).size < 0))
    for (const client of ['2001:db8::1', '2001:db8::ffff:2', '2001:db8:0:1::1', '192.0.2.1', '::ffff:192.0.2.2'])
      await verify('bob', client, { ...waiter, client })
    expect([...clients]).toEqual(['2001:db8::', '2001:db8:0:1::', '192.0.2.1', '::ffff:192.0.2.2'])
  })

  test('are those of the last line of a user, and comments are ignored', () => {
    expect(readUsers(['bob:ZYzkUPb0dAg3s', bcrypt, '#eve:ZYzkUPb0dAg3s', 'raw:password', ':ZYzkUPb0dAg3s', 'x:ZYzkUPb0dAg3s:more'])).toEqual(
      new Map([
        ['bob', bcrypt.slice('bob:'.length)],
        ['x', 'ZYzkUPb0dAg3s'],
      ]),
    )
  })
})

describe('the worker thread for checks', () => {
  const hash = bcrypt.slice('bob:'.length)

  test('does not block the main thread', async () => {
    const costly = '$2y$11$abcdefghijklmnopqrstuuXzJQ9tDZ7q0L3bq5jO8hV0kq1yYw3eO'
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    expect(await checkInThread('secret', costly)).toBe(false)
    clearInterval(timer)
    // There are none if the check ran in this thread.
    expect(turns).toBeGreaterThan(1)
  })

  test('rejects checks beyond the length of its queue', async () => {
    const checks = await Promise.allSettled(Array.from({ length: 300 }, () => checkInThread('secret', hash)))
    const refusals = checks.flatMap((result) => (result.status === 'rejected' ? [result.reason as ProxyError] : []))
    expect(refusals).toHaveLength(300 - 256)
    expect(refusals[0]?.code).toBe('PROCESSING_FAILED')
    expect(await checkInThread('secret', hash)).toBe(true)
  })

  test('holds at most a quarter of its queue for one client, and serves clients in turn', async () => {
    const done: string[] = []
    const run = (client: string): Promise<unknown> => checkInThread('secret', hash, { client }).then(() => done.push(client))
    const first = await Promise.allSettled([...Array.from({ length: 70 }, () => run('a')), run('b')])
    // One is running, 64 wait.
    expect(first.filter(({ status }) => status === 'rejected')).toHaveLength(70 - 65)
    expect(done).toHaveLength(66)
    expect(done.indexOf('b')).toBeLessThan(3)
  })

  test('drops checks that are aborted before they start', async () => {
    const abort = new AbortController()
    const running = checkInThread('secret', hash)
    const waiting = Array.from({ length: 256 - 1 }, () => checkInThread('secret', hash, { signal: abort.signal }))
    await expect(checkInThread('secret', hash)).rejects.toThrow()
    abort.abort(new Error('client disconnected'))
    for (const result of await Promise.allSettled(waiting)) expect(result).toMatchObject({ status: 'rejected', reason: { message: 'client disconnected' } })
    expect(await Promise.all([running, checkInThread('secret', hash)])).toEqual([true, true])
  })
})
