import { describe, expect, test } from '@jest/globals'
import { Hono } from 'hono'
import { createLogging } from '../../observe/telemetry/log.ts'
import { createAdminApp } from './admin.ts'

const TOKEN = 'a1'.repeat(32)
const stopped: string[] = []

const createApp = (token?: { value: string; hint: string }) =>
  createAdminApp({
    logging: createLogging({ writer: { dropped: 0, write: () => true, flush: () => Promise.resolve(), flushSync: () => undefined } }),
    configDump: () => ({}),
    explainRoute: () => [{}],
    trace: () => Promise.resolve({ steps: [] } as never),
    loadConsole: () => Promise.resolve(new Hono().all('*', (c) => c.json({}))),
    consoleFiles: new URL('file:///nowhere/'),
    onQuit: () => void stopped.push('quit'),
    listening: () => ({ host: '127.0.0.1', port: 15000 }),
    token,
  })

const app = createApp({ value: TOKEN, hint: 'this prints it: kubectl' })
const ask = (of: Hono, method: string, path: string, authorization?: string) =>
  of.request(`http://127.0.0.1:15000${path}`, { method, headers: { host: '127.0.0.1:15000', ...(authorization !== undefined && { authorization }) } })

/** Every route of the app, so that a new one is tried without a change here, and one that does not exist. */
const routes = [
  ...new Set(
    app.routes
      .filter(({ path }) => path !== '/*')
      .flatMap(({ method, path }) => (method === 'ALL' ? ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'] : [method]).map((each) => `${each} ${path}`)),
  ),
  'GET /nothing',
].map((line) => line.replaceAll(/[*:]\w*/g, 'x').split(' ') as [string, string])

describe('with a token,', () => {
  test('the routes are found', () => {
    for (const path of ['/', '/assets/x', '/api/v1/x', '/config_dump', '/debug/trace', '/logging', '/memory', '/quitquitquit'])
      expect(routes.map(([, each]) => each)).toContain(path)
  })

  test.each(routes)('%s %s needs it', async (method, path) => {
    const wrong = [undefined, '', 'Bearer', 'Bearer ', `Bearer ${TOKEN.slice(1)}`, `Bearer ${TOKEN}0`, `Bearer ${TOKEN.toUpperCase()}`, `Basic ${TOKEN}`, TOKEN]
    for (const authorization of wrong) {
      const response = await ask(app, method, path, authorization)
      expect([authorization, response.status, response.headers.get('www-authenticate')]).toEqual([authorization, 401, 'Bearer'])
      expect(await response.text()).not.toContain(TOKEN)
    }
    expect(stopped).toEqual([])
    expect((await ask(app, method, path, `Bearer ${TOKEN}`)).status).toBe((await ask(createApp(), method, path)).status)
    await new Promise(setImmediate)
    stopped.length = 0
  })

  test('a request without it is told how to read it', async () => {
    expect(await (await ask(app, 'GET', '/config_dump')).text()).toBe(
      'the admin endpoint needs a token: send authorization: Bearer TOKEN; this prints it: kubectl\n',
    )
  })

  test('web pages of others are rejected even if they have it', async () => {
    const headers = { host: 'evil.example', authorization: `Bearer ${TOKEN}` }
    expect((await app.request('http://evil.example/config_dump', { headers })).status).toBe(403)
  })
})
