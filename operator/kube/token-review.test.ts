import { Metadata } from '@grpc/grpc-js'
import { expect, test } from '@jest/globals'
import type { KubeConnection } from './connection.ts'
import { createTokenAuthentication } from './token-review.ts'

const ROLE = 'apps~gw'
const good = { authenticated: true, audiences: ['proxy'], user: { username: 'system:serviceaccount:apps:gw' } }

async function authenticate(header: string | undefined, status: object | Error, role: string | undefined = ROLE) {
  const bodies: object[] = []
  const connection: KubeConnection = {
    async request<T extends object>(_method: string, _path: string, options: { body?: object } = {}): Promise<T> {
      bodies.push(options.body ?? {})
      if (status instanceof Error) throw status
      return { status } as unknown as T
    },
    stream: () => Promise.reject(new Error('not used')),
    close: () => {},
  }
  const counts = { requests: 0, successes: 0, failures: 0 }
  const metadata = new Metadata()
  if (header !== undefined) metadata.set('authorization', header)
  const outcome = await createTokenAuthentication(connection, counts)(metadata, role)
  return { outcome, bodies, counts }
}

test('a token of the ServiceAccount of the Gateway is accepted', async () => {
  const { outcome, bodies, counts } = await authenticate('Bearer abc.def', good)
  expect(outcome).toEqual({ isAllowed: true })
  expect(bodies).toEqual([{ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'abc.def', audiences: ['proxy'] } }])
  expect(counts).toEqual({ requests: 1, successes: 1, failures: 0 })
})

test.each<[string, string | undefined, object | Error, string | undefined, string]>([
  ['no token', undefined, good, ROLE, 'send `authorization: Bearer'],
  ['another scheme', 'Basic abc', good, ROLE, 'send `authorization: Bearer'],
  ['a token with invalid characters', 'Bearer a b', good, ROLE, 'send `authorization: Bearer'],
  ['a token that is too long', `Bearer ${'a'.repeat(20_000)}`, good, ROLE, 'send `authorization: Bearer'],
  ['a token that the API server does not know', 'Bearer abc', { authenticated: false }, ROLE, 'not valid for audience proxy'],
  ['a token for another audience', 'Bearer abc', { ...good, audiences: ['api'] }, ROLE, 'not valid for audience proxy'],
  ['an API server that does not know audiences', 'Bearer abc', { ...good, audiences: undefined }, ROLE, 'not valid for audience proxy'],
  ['a token of a user', 'Bearer abc', { ...good, user: { username: 'admin' } }, ROLE, 'not of a service account'],
  ['another Gateway', 'Bearer abc', good, 'apps~other', 'requested gateway apps~other but authenticated as apps~gw'],
  ['another namespace', 'Bearer abc', good, 'other~gw', 'requested gateway other~gw but authenticated as apps~gw'],
  ['a name that contains the separator', 'Bearer abc', { ...good, user: { username: 'system:serviceaccount:a:b:c' } }, 'a~b:c', 'not of a service account'],
  ['an unreachable API server', 'Bearer abc', new Error('down, token abc'), ROLE, 'cannot be reviewed now'],
])('%s is refused', async (_, header, status, role, message) => {
  const { outcome, counts } = await authenticate(header, status, role)
  expect(outcome).toEqual({ isAllowed: false, message: expect.stringContaining(message) })
  expect(counts.failures).toBe(1)
  expect(JSON.stringify(outcome)).not.toContain('abc')
})

test('a client that names no Gateway is rejected', async () => {
  const metadata = new Metadata()
  metadata.set('authorization', 'Bearer abc')
  const connection: KubeConnection = { request: () => Promise.reject(new Error('called')), stream: () => Promise.reject(new Error('called')), close: () => {} }
  const outcome = await createTokenAuthentication(connection, { requests: 0, successes: 0, failures: 0 })(metadata, undefined)
  expect(outcome).toEqual({ isAllowed: false, message: 'authentication failed: node metadata has no role' })
})
