import { afterEach, describe, expect, test } from '@jest/globals'
import type { Traffic } from '#gen/config/types.ts'
import { compose } from '../../request/exchange/compose.ts'
import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { sendRaw, startHttp1Server, type TestServer } from '../../net/server/http1/testing.ts'
import { compilePolicies } from '../index.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

/** Sends raw request lines through policies. Returns the status and the forwarded headers. */
async function send(traffic: Omit<Traffic, 'budgets'>, lines: string[]): Promise<{ status: string | undefined; seen: [string, string][] | undefined }> {
  let seen: [string, string][] | undefined
  const { authorization, ...rest } = traffic
  const policies = compilePolicies({ traffic: { ...rest, ...(authorization && { authorization: [authorization] }) } })
  server = await startHttp1Server(
    compose(policies, (exchange) => {
      seen = [...exchange.request.headers]
      exchange.response = { status: 200, headers: new HeaderList(), body: new BufferBody('ok'), upgraded: undefined }
    }),
  )
  const { text } = await sendRaw(server.port, [`GET / HTTP/1.1\r\nhost: a\r\n${lines.join('\r\n')}\r\nconnection: close\r\n\r\n`])
  await server.close()
  return { status: /HTTP\/1\.1 (\d+)/.exec(text)?.[1], seen }
}

describe('a header that only the gateway may set', () => {
  const traffic: Omit<Traffic, 'budgets'> = { transformation: { request: { set: [{ name: 'X-User', value: 'jwt.sub' }] } } }
  const given: Omit<Traffic, 'budgets'> = { transformation: { request: { set: [{ name: 'x-user', value: '"ann"' }] } } }

  test.each<[string, string[]]>([
    ['once', ['x-user: root']],
    ['in another case', ['X-uSER: root']],
    ['several times', ['x-user: root', 'X-User: admin', 'x-user:']],
    ['between others', ['a: 1', 'x-user: root', 'b: 2', 'X-USER: root']],
    ['with white space around the value', ['x-user: \t root \t']],
  ])('is not accepted from the client: %s', async (_, lines) => {
    expect((await send(traffic, lines)).seen?.filter(([name]) => name.toLowerCase() === 'x-user')).toEqual([])
    expect((await send(given, lines)).seen?.filter(([name]) => name.toLowerCase() === 'x-user')).toEqual([['x-user', 'ann']])
  })

  test.each<[string, string[]]>([
    ['white space before the colon', ['x-user : root']],
    ['a folded line', ['a: 1', ' x-user: root']],
    ['a bare line feed', ['a: 1\nx-user: root']],
    ['a bare carriage return', ['a: 1\rx-user: root']],
    ['a zero byte', ['x-user\0: root']],
    ['a name beyond ASCII', ['x-us\u00e9r: root']],
  ])('is not accepted in a malformed spelling: %s', async (_, lines) => {
    expect(await send(traffic, lines)).toEqual({ status: '400', seen: undefined })
  })

  test('is not removed by Connection, whose headers are removed before policies run', async () => {
    expect((await send(given, ['x-user: root', 'connection: x-user'])).seen?.filter(([name]) => name === 'x-user')).toEqual([['x-user', 'ann']])
  })
})

describe('a rule about a header', () => {
  const rule = (expression: string): Traffic => ({ authorization: { policy: { matchExpressions: [expression] } } })

  test.each<[string, string, string[], string]>([
    ['finds a name in any case', 'request.headers["X-Role"] == "user"', ['x-ROLE: user'], '200'],
    ['is not met by a value among others', 'request.headers["x-role"] == "user"', ['x-role: user', 'x-role: admin'], '403'],
    ['is not met by values in one line', 'request.headers["x-role"] == "user"', ['x-role: user, admin'], '403'],
    ['is not met by an empty value', 'request.headers["x-role"] != ""', ['x-role:'], '403'],
    ['can read all values', '!request.headers.join()["x-role"].contains("admin")', ['x-role: user', 'X-Role: admin'], '403'],
    ['sees no header made from the request line', 'has(request.headers["host"])', [], '403'],
    ['sees no members of objects', 'has(request.headers["constructor"])', [], '403'],
    ['sees no names of Object.prototype', 'request.headers["__proto__"] != "x"', [], '403'],
  ])('%s', async (_, expression, lines, status) => expect((await send(rule(expression), lines)).status).toBe(status))
})
