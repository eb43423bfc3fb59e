import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { ConfigVersionDetail, ConfigVersions } from '#api/management/config.ts'
import type { McpSessions } from '#api/management/mcp.ts'
import type { Overview } from '#api/management/overview.ts'
import type { RequestBatch, TryResult } from '#api/management/requests.ts'
import type { RouteDetail } from '#api/management/routes.ts'
import type { Series } from '#api/management/stats.ts'
import { send } from '../../harness/client.ts'
import { replaceFile } from '../../harness/files.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { startEcho, type EchoServer } from '../../harness/upstream/echo.ts'
import { startMcpUpstream } from '../../harness/upstream/mcp.ts'
import { waitUntil } from '../../harness/wait.ts'

const CREDENTIAL = 'sk-0123456789abcdef'

describe.each([1, 3])('the management API of a data plane with WORKERS=%d', (workers) => {
  let directory: string
  let file: string
  let port = 0
  let dataplane: Dataplane
  let echo: EchoServer
  let mcp: Awaited<ReturnType<typeof startMcpUpstream>>

  const configOf = (timeout: string, path = '/guarded') =>
    JSON.stringify({
      binds: [
        {
          port,
          listeners: [
            {
              routes: [
                {
                  matches: [{ path: { type: 'PathPrefix', value: path } }],
                  policies: { authorization: { policy: { matchExpressions: ['request.headers["x-user"] == "bob"'] } } },
                  backends: [{ host: `127.0.0.1:${echo.port}`, policies: { auth: { key: CREDENTIAL } } }],
                },
                {
                  matches: [{ path: { type: 'PathPrefix', value: '/mcp' } }],
                  backends: [
                    {
                      mcp: { targets: ['books', 'papers'].map((name) => ({ name, static: { host: '127.0.0.1', port: mcp.port } })) },
                      policies: {
                        mcp: { authorization: { action: 'Deny', policy: { matchExpressions: ['mcp.tool.target == "papers" && mcp.tool.name == "search"'] } } },
                      },
                    },
                  ],
                },
                { matches: [{ path: { type: 'PathPrefix', value: '/' } }], timeouts: { request: timeout }, backends: [{ host: `127.0.0.1:${echo.port}` }] },
              ],
            },
          ],
        },
      ],
    })
  const read = async <T>(path: string): Promise<T> => (await dataplane.admin(path)).json() as Promise<T>
  const listenerKey = async (): Promise<string> => (await read<Overview>('/api/v1/overview')).listeners[0]?.key ?? ''
  const tryOut = async (request: object): Promise<TryResult> => {
    const init = {
      method: 'POST',
      body: JSON.stringify({ host: 'a.example', listener: await listenerKey(), ...request }),
      headers: { 'content-type': 'application/json' },
    }
    return (await fetch(`http://127.0.0.1:${dataplane.ports.admin}/api/v1/try`, init)).json() as Promise<TryResult>
  }

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'console-'))
    file = join(directory, 'config.json')
    echo = await startEcho({ name: 'echo' })
    mcp = await startMcpUpstream({ name: 'books', port: 0 })
    port = await findFreePort()
    await writeFile(file, configOf('5s'))
    dataplane = await startDataplane({ config: { file }, env: { WORKERS: String(workers) } })
  })
  afterAll(async () => {
    await dataplane?.stop()
    await echo?.close()
    await mcp?.close()
    await rm(directory, { recursive: true })
  })

  test('counts the requests of all threads', async () => {
    await Promise.all(Array.from({ length: 30 }, () => send({ port, path: '/counted' })))
    const total = async (): Promise<number> => (await read<Series>('/api/v1/series?key=total')).points.reduce((sum, { requests }) => sum + requests, 0)
    await waitUntil('the history holds all requests', async () => (await total()) === 30)
    expect((await read<Series>('/api/v1/series?key=route%20none')).points.every(({ requests }) => requests === 0)).toBe(true)
  })

  test('tries out a request and returns its response with every step', async () => {
    const { response, error, trace } = await tryOut({ path: '/guarded/x?y=1', method: 'POST', body: 'hello', headers: [['x-user', 'bob']] })
    expect([error, response?.status, response?.encoding]).toEqual([null, 200, 'utf8'])
    expect(JSON.parse(response?.body ?? '')).toMatchObject({ method: 'POST', path: '/guarded/x?y=1', host: 'a.example', body: 'hello' })
    expect(response?.body).not.toContain('x-proxy-trace-id')
    expect(trace?.steps.map(({ kind }) => kind)).toEqual(['listener', 'route', 'policy', 'expression', 'upstream', 'answer'])
  })

  test('shows which policy rejected a request that was tried out', async () => {
    const { response, trace } = await tryOut({ path: '/guarded' })
    expect([response?.status, trace?.reason]).toEqual([403, 'AUTHORIZATION'])
    expect(trace?.steps.find(({ kind }) => kind === 'policy')).toMatchObject({ name: 'authorization', detail: { refused: 'AUTHORIZATION' } })
  })

  test('cuts a long response, and reports a request without a response', async () => {
    const { response } = await tryOut({ path: '/?size=400000' })
    expect([response?.status, response?.isTruncated, response?.body.length]).toEqual([200, true, 262_144])
    const { error, response: none } = await tryOut({ path: '/?delay=60000', timeoutMs: 200 })
    expect([none, error]).toEqual([null, 'no response within 200 ms'])
  })

  test('streams the response of a request that is tried out, and its trace at the end', async () => {
    const response = await fetch(`http://127.0.0.1:${dataplane.ports.admin}/api/v1/try/stream`, {
      method: 'POST',
      body: JSON.stringify({ host: 'a.example', listener: await listenerKey(), path: '/streamed', method: 'POST', body: 'h\u00e9llo' }),
      headers: { 'content-type': 'application/json' },
    })
    const events = (await response.text()).split('\n\n').flatMap((text) => {
      const [, event, data] = /^event: (\w+)\ndata: (.*)$/s.exec(text) ?? []
      return data === undefined ? [] : [{ event, data: JSON.parse(data) as Record<string, unknown> }]
    })
    expect([events[0]?.event, events[0]?.data['status'], events.at(-1)?.event]).toEqual(['head', 200, 'end'])
    const body = events.filter(({ event }) => event === 'data').map(({ data }) => String(data['text']))
    expect(JSON.parse(body.join(''))).toMatchObject({ path: '/streamed', body: 'h\u00e9llo' })
    const last = events.at(-1)?.data as Partial<TryResult> | undefined
    expect([last?.response?.body, last?.response?.status, last?.trace?.steps.at(-1)?.kind]).toEqual(['', 200, 'answer'])
    const unknown = await fetch(`http://127.0.0.1:${dataplane.ports.admin}/api/v1/try/stream`, {
      method: 'POST',
      body: JSON.stringify({ host: 'a.example', listener: 'none' }),
      headers: { 'content-type': 'application/json' },
    })
    expect([unknown.status, await unknown.json()]).toEqual([404, { error: 'listener "none": there is no HTTP or HTTPS listener with this key' }])
  })

  test('lists MCP sessions, and traces which rule hides a tool, also after the response head', async () => {
    const post = async (message: object, headers: readonly (readonly [string, string])[] = []): Promise<TryResult> => {
      const own = [['content-type', 'application/json'], ['accept', 'application/json, text/event-stream'], ...headers]
      return tryOut({ path: '/mcp', method: 'POST', headers: own, body: JSON.stringify({ jsonrpc: '2.0', ...message }) })
    }
    const clientInfo = { name: 'tester', version: '7' }
    const started = await post({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo } })
    const session = started.response?.headers.find(([name]) => name === 'mcp-session-id')?.[1] ?? ''
    await post({ method: 'notifications/initialized' }, [['mcp-session-id', session]])
    const { response, trace } = await post({ id: 2, method: 'tools/list' }, [['mcp-session-id', session]])
    expect(response?.body).toContain('"tools":[{"name":"books_')
    expect(trace?.steps.filter(({ kind }) => kind === 'item').map(({ name, detail }) => [name, detail])).toEqual([
      ['tool search', { target: 'papers', hidden: 'a Deny rule matches: mcp.tool.target == "papers" && mcp.tool.name == "search"' }],
    ])
    const sessions = await read<McpSessions>('/api/v1/mcp/sessions')
    expect(sessions).toMatchObject({ total: 1, sessions: [{ client: clientInfo, revision: '2025-06-18', targets: [{ name: 'books' }, { name: 'papers' }] }] })
    expect(JSON.stringify(sessions)).not.toContain(session.slice(0, 40))
  })

  test('shows the requests of all threads that its filter admits', async () => {
    const path = `/api/v1/requests?tail=t&filter=${encodeURIComponent('request.path.startsWith("/tailed")')}`
    await read<RequestBatch>(path)
    await Promise.all(
      Array.from({ length: 30 }, (_, n) => send({ port, path: n < 10 ? '/tailed' : '/other', headers: { authorization: `Bearer ${CREDENTIAL}` } })),
    )
    const records: RequestBatch['records'] = []
    await waitUntil('ten requests are in the tail', async () => records.push(...(await read<RequestBatch>(path)).records) === 10)
    expect(new Set(records.map(({ path: target, status }) => `${status} ${target}`))).toEqual(new Set(['200 /tailed']))
    expect(JSON.stringify(records)).not.toContain(CREDENTIAL)
  })

  test('keeps versions with their differences, and rejections', async () => {
    await replaceFile(file, configOf('7s'))
    const versions = (): Promise<ConfigVersions> => read('/api/v1/config/versions')
    await waitUntil('the second version is applied', async () => (await versions()).current === 2)
    const { changes } = await read<ConfigVersionDetail>('/api/v1/config/versions/2')
    expect(changes).toMatchObject([{ kind: 'route', change: 'changed', differences: [{ path: 'timeouts.requestMs', before: 5000, after: 7000 }] }])
    await replaceFile(file, '{ "binds": 1 }')
    await waitUntil('the broken file is rejected', async () => (await versions()).rejections.length > 0)
    expect((await versions()).rejections).toMatchObject([{ source: 'file', code: 'PX4004', message: expect.stringContaining('binds') }])
    expect((await read<Overview>('/api/v1/overview')).problems).toMatchObject([{ severity: 'error', code: 'PX4004', object: 'config' }])
    await replaceFile(file, configOf('7s', '/other'))
    await waitUntil('the corrected file is applied', async () => (await read<Overview>('/api/v1/overview')).problems.length === 0)
  })

  test('shows no credential of the config', async () => {
    const { routes } = await read<Overview>('/api/v1/overview')
    const details = await Promise.all(routes.map(({ kind, namespace, name }) => read<RouteDetail>(`/api/v1/routes/${kind}/${namespace}/${name}`)))
    const texts = await Promise.all(
      ['/api/v1/config', '/api/v1/config/versions/1', '/api/v1/config/versions/3'].map(async (path) => (await dataplane.admin(path)).text()),
    )
    for (const text of [JSON.stringify(details), ...texts]) {
      expect(text.length).toBeGreaterThan(100)
      expect(text).not.toContain(CREDENTIAL)
    }
  })
})
