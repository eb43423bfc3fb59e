import { getRequestListener } from '@hono/node-server'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { BrowserContext } from 'playwright-core'
import { updateConsole } from '../../../images/console.ts'
import { createConsoleServer } from '../../../operator/proxyctl/console/server.ts'
import { Targets, type Target } from '../../../operator/proxyctl/console/targets.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { startEcho, type EchoServer } from '../../harness/upstream/echo.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startBrowser } from '../browser/browser.ts'
import { DIST, openPage } from './fixture.ts'

/** The console of several replicas, as `proxyctl console` serves it; `suites/install` tests its API with pods. */

interface Replica {
  readonly target: Target
  /** Sends requests through its listener. */
  send(count: number): Promise<void>
  stop(): Promise<void>
}

let echo: EchoServer
let context: BrowserContext
let directory: string
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  await updateConsole(DIST)
  directory = await mkdtemp(join(tmpdir(), 'console-replicas-'))
  closing.unshift(() => rm(directory, { recursive: true }))
  echo = await startEcho({ name: 'app' })
  closing.unshift(() => echo.close())
  const browser = await startBrowser()
  closing.unshift(() => browser.close())
  context = browser.context
}, 240_000)
afterAll(async () => {
  for (const close of closing) await close()
})

async function startReplica(name: string): Promise<Replica> {
  const port = await findFreePort()
  const routes = [{ name: 'shop', backends: [{ host: `127.0.0.1:${echo.port}` }] }]
  const file = join(directory, `${name}.json`)
  await writeFile(file, JSON.stringify({ binds: [{ port, listeners: [{ name: 'http', routes }] }] }))
  const dataplane = await startDataplane({ config: { file } })
  let isStopped = false
  const stop = async (): Promise<void> => {
    if (!isStopped) await dataplane.stop(100)
    isStopped = true
  }
  closing.unshift(stop)
  return {
    target: {
      name,
      request: ({ method, path, headers, body, signal }) =>
        new Promise((resolve, reject) => {
          request({ host: '127.0.0.1', port: dataplane.ports.admin, method, path, headers, signal, agent: false }, resolve).on('error', reject).end(body)
        }),
    },
    send: async (count) => {
      for (let n = 0; n < count; n++) expect((await fetch(`http://127.0.0.1:${port}/${name}`)).status).toBe(200)
    },
    stop,
  }
}

test('the page adds up the numbers of two replicas, and goes on when one is replaced', async () => {
  const [first, second] = [await startReplica('first'), await startReplica('second')]
  let replicas: readonly Replica[] = [first, second]
  const targets = new Targets(() => Promise.resolve(replicas.map(({ target }) => target)))
  let port = 0
  const app = createConsoleServer({ targets, listening: () => ({ host: '127.0.0.1', port }) })
  const handle = getRequestListener(app.fetch, { overrideGlobalObjects: false })
  const server = createServer((incoming, response) => void handle(incoming, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
  closing.unshift(async () => {
    server.close()
    server.closeAllConnections()
  })

  const { page, problems } = await openPage(context, `http://127.0.0.1:${port}/`, '#/overview')
  await page.evaluate('localStorage.setItem(\'requests.columns\', \'["status", "path", "pod"]\')')
  await page.reload()
  const status = page.getByRole('status')
  await status.getByText('2 replicas').waitFor()
  await Promise.all([
    page.waitForResponse((response) => response.url().includes('/api/v1/requests/stream')),
    page.getByRole('link', { name: 'Requests' }).click(),
  ])
  await Promise.all([first.send(5), second.send(7)])
  await page.locator('.tail-state', { hasText: '12 seen' }).waitFor()
  const rows = page.locator('.tail tbody tr')
  expect((await rows.allTextContents()).toSorted()).toEqual([
    ...Array.from({ length: 5 }, () => expect.stringMatching(/^200.*\/firstfirst$/)),
    ...Array.from({ length: 7 }, () => expect.stringMatching(/^200.*\/secondsecond$/)),
  ])
  // The strips are the sums too: their points are complete every ten seconds.
  await page.locator('.history', { hasText: '12 in all' }).waitFor()

  await first.stop()
  await second.send(1)
  await page.locator('.tail-state', { hasText: '13 seen' }).waitFor()
  const third = await startReplica('third')
  replicas = [second, third]
  const ofThird = rows.filter({ hasText: '/thirdthird' }).first()
  await waitUntil('the page shows a request of the new replica', async () => {
    await third.send(1)
    return ofThird.isVisible()
  })
  await status.getByText('2 replicas').waitFor()
  expect(problems).toEqual([])
}, 240_000)
