import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { BackendAuth } from '#gen/config/types.ts'
import { staticTarget } from './testing/gateway.ts'
import { begin, call, initialize, send, MCP_HEADERS, TestBed } from './testing/test-bed.ts'
import { closeServer } from './testing/server.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

/** A token endpoint that prefixes the token of the user, and rejects that of eve. */
async function startEndpoint(): Promise<{ auth: BackendAuth; subjects: (string | null)[] }> {
  const subjects: (string | null)[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += String(chunk)))
    request.on('end', () => {
      const subject = new URLSearchParams(text).get('subject_token')
      subjects.push(subject)
      const [status, body] =
        subject === 'eve' ? [400, { error: 'invalid_grant' }] : [200, { access_token: `for-${subject}`, token_type: 'Bearer', expires_in: 600 }]
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  bed.onClose(() => closeServer(server))
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return { auth: { oauth: { grantType: 'TokenExchange', tokenEndpoint: { backendRef: { address }, path: '/token' } } }, subjects }
}

const as = (user: string) => ({ authorization: `Bearer ${user}` })

describe('tokens of an authorization server for targets', () => {
  test('each user has a token of its own, which all requests of its sessions carry', async () => {
    const { auth, subjects } = await startEndpoint()
    const upstream = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', upstream.port)] }, policies: { auth } })
    for (const user of ['ann', 'bob']) {
      const { post } = await begin(url, as(user))
      expect((await post(call('tools/call', { name: 'echo', arguments: { text: user } }))).status).toBe(200)
    }
    const sent = upstream.received.map(({ headers }) => headers.authorization)
    expect([...new Set(sent)]).toEqual(['Bearer for-ann', 'Bearer for-bob'])
    expect(subjects).toEqual(['ann', 'bob'])
  })

  test.each([
    ['without a token', {}, 'Bearer'],
    ['whose token the authorization server rejects', as('eve'), 'Bearer error="invalid_token"'],
  ])('a client %s gets 401, and nothing is sent', async (_, headers, challenge) => {
    const { auth } = await startEndpoint()
    const upstream = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', upstream.port)] }, policies: { auth } })
    const answer = await send(url, 'POST', { ...MCP_HEADERS, ...headers }, initialize())
    expect([answer.status, answer.headers['www-authenticate'], upstream.received.length]).toEqual([401, challenge, 0])
    expect(answer.text).toMatch(/^backend authentication failed: the (request has no token|token was not accepted)$/)
  })

  test('a target whose token endpoint fails is a 502, and is skipped with FailOpen', async () => {
    const { auth } = await startEndpoint()
    const broken: BackendAuth = { oauth: { grantType: 'TokenExchange', tokenEndpoint: { backendRef: { address: '127.77.3.1:1' }, path: '/token' } } }
    const [one, two] = [await bed.upstream('one'), await bed.upstream('two')]
    const targets = [staticTarget('a', one.port, { policies: { auth } }), staticTarget('b', two.port, { policies: { auth: broken } })]
    const gateway = await bed.gateway({ mcp: { targets } })
    expect((await send(gateway.url, 'POST', { ...MCP_HEADERS, ...as('ann') }, initialize())).status).toBe(502)
    gateway.configure({ mcp: { targets, failureMode: 'FailOpen' } })
    const { post } = await begin(gateway.url, as('ann'))
    expect((await post(call('tools/call', { name: 'a_echo', arguments: { text: 'x' } }))).status).toBe(200)
    expect([one.received.every(({ headers }) => headers.authorization === 'Bearer for-ann'), two.received.length]).toEqual([true, 0])
  })
})
