import { describe, expect, test } from '@jest/globals'
import { loadConfigFile } from './file.ts'

async function warningsOf(file: object): Promise<readonly string[]> {
  const { warnings } = await loadConfigFile('gateway.yaml', { text: JSON.stringify(file), env: { HOST: '169.254.169.254' } })
  return warnings
}

const inBackend = (backend: object): object => ({ binds: [{ port: 8080, listeners: [{ routes: [{ backends: [backend] }] }] }] })
const inPolicy = (traffic: object): object => ({
  binds: [{ port: 8080, listeners: [{ policies: traffic, routes: [{ backends: [{ host: 'a.example:80' }] }] }] }],
})

/** Each way to name a host in a config file. */
const places: Readonly<Record<string, (host: string, port: number) => object>> = {
  'a destination': (host, port) => inBackend({ host: `${host}:${port}` }),
  'a destination with policies': (host, port) => inBackend({ host: `${host}:${port}`, policies: { http: { version: 'HTTP1' } } }),
  'a TCP route': (host, port) => ({ binds: [{ port: 5432, listeners: [{ tcpRoutes: [{ backends: [{ host: `${host}:${port}` }] }] }] }] }),
  'a backend': (host, port) => ({ backends: [{ name: 'b', host: `${host}:${port}` }], ...inBackend({ backend: 'b' }) }),
  'an MCP target': (host, port) => inBackend({ mcp: { targets: [{ name: 't', static: { host: host.replace(/^\[|\]$/g, ''), port } }] } }),
  'an LLM provider': (host, port) => inBackend({ ai: { provider: { openai: {}, host: host.replace(/^\[|\]$/g, ''), port } } }),
  'a server of the short form': (host, port) => ({ mcp: { a: { url: `http://${host}:${port}/mcp` } } }),
  'a model of the short form': (host, port) => ({ llm: { models: { m: { openai: { apiKey: 'k', url: `http://${host}:${port}/v1` } } } } }),
  'external authorization': (host, port) => inPolicy({ extAuth: { backendRef: { address: `${host}:${port}` }, http: {} } }),
  'a mirror': (host, port) => ({
    binds: [
      {
        port: 8080,
        listeners: [{ routes: [{ filters: { mirrors: [{ backend: { address: `${host}:${port}` } }] }, backends: [{ host: 'a.example:80' }] }] }],
      },
    ],
  }),
}

describe('a host of a config file that the data plane does not connect to is a warning', () => {
  test.each(Object.keys(places))('in %s', async (place) => {
    const fileOf = places[place] ?? (() => ({}))
    for (const host of ['169.254.169.254', '0.0.0.0', '[fe80::1]', '224.0.0.1'])
      expect(await warningsOf(fileOf(host, 80))).toEqual([
        expect.stringMatching(/requests to \S+ fail with 503, because it is an? .+ address; .* config\.upstreams\.addresses \[PX1361\]$/),
      ])
    expect(await warningsOf(fileOf('localhost', 15_000))).toEqual([expect.stringMatching(/a port of this gateway .*; use another port \[PX1361\]$/)])
    for (const host of ['localhost', '127.0.0.1', '[::1]', 'b.example', '10.0.0.7']) expect(await warningsOf(fileOf(host, 9001))).toEqual([])
    const permitted = { config: { upstreams: { addresses: ['169.254.0.0/16'] } }, ...fileOf('169.254.169.254', 80) }
    expect(await warningsOf(permitted)).toEqual([])
  })

  test('without the value of a placeholder', async () => {
    for (const fileOf of Object.values(places)) {
      const warnings = await warningsOf(fileOf('${HOST}', 80))
      expect(warnings).toHaveLength(1)
      expect(warnings.join()).not.toContain('169.254.169.254')
    }
  })

  test('unless the management ports are others', async () => {
    const file = { config: { adminAddr: '127.0.0.1:16000' }, ...inBackend({ host: 'localhost:15000' }) }
    expect(await warningsOf(file)).toEqual([])
    expect(await warningsOf({ ...file, ...inBackend({ host: 'localhost:16000' }) })).toEqual([expect.stringContaining('[PX1361]')])
  })
})
