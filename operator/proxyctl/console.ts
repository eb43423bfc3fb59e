import { getRequestListener } from '@hono/node-server'
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Problem } from '#api/management/overview.ts'
import { listTargets, locate } from './live/admin.ts'
import { createConsoleServer } from './console/server.ts'
import { Targets } from './console/targets.ts'
import { CommandError, UsageError } from './output.ts'
import { describeCluster } from './live/status.ts'
import type { Command, Invocation, Row } from './types.ts'

const LOOPBACK = '127.0.0.1'
const PROBLEMS_MS = 5000
const MAX_PROBLEMS = 100

/** Serves the console of a Gateway on loopback until the process ends. */
export const runConsole: Command = async (invocation) => {
  const { args, options, output } = invocation
  if (args.length > 0) throw new UsageError('console takes no argument; --gateway NS/NAME names the Gateway')
  const port = parsePort(options.port)
  const location = await output.wait('searching for the data plane', locate(invocation))
  const targets = new Targets(() => listTargets(location))
  await output.wait('reaching the data planes', targets.json('/api/v1/stats'))
  let listening = { host: LOOPBACK, port }
  const problems = location.kind === 'pods' ? cached(() => findProblems(invocation), PROBLEMS_MS) : undefined
  const app = createConsoleServer({ targets, problems, listening: () => listening })
  const handle = getRequestListener(app.fetch, { overrideGlobalObjects: false })
  const server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new CommandError('PX6011', `cannot listen on ${LOOPBACK}:${port}: ${error.code ?? error.message}; --port PORT names another port, 0 any free one`, {
          cause: error,
        }),
      ),
    )
    server.listen(port, LOOPBACK, resolve)
  })
  listening = { host: LOOPBACK, port: (server.address() as AddressInfo).port }
  const url = `http://${LOOPBACK}:${listening.port}/`
  output.print({ url }, () => [`console ${url}`])
  if (options['no-open'] !== true) openBrowser(url)
  return new Promise<number>((resolve) => {
    const stop = (): void => {
      server.close(() => resolve(0))
      server.closeAllConnections()
    }
    process.once('SIGINT', stop)
    process.once('SIGTERM', stop)
  })
}

function parsePort(text = '0'): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new UsageError(`--port: ${JSON.stringify(text)} is not a port from 0 to 65535`)
  return port
}

/** Bad conditions of the objects on the cluster that the user may read. */
async function findProblems(invocation: Invocation): Promise<readonly Problem[]> {
  try {
    const rows = await describeCluster(invocation)
    return rows.flatMap(toProblems).slice(0, MAX_PROBLEMS)
  } catch (error) {
    const message = `the statuses on the cluster cannot be read: ${error instanceof Error ? error.message : String(error)}`
    return [{ severity: 'warning', code: null, message, object: null, pod: null }]
  }
}

/** A problem for each bad condition; the code is at the end of its message. */
export function toProblems({ severity, kind, namespace, name, conditions }: Row): Problem[] {
  if (severity !== 'error' && severity !== 'warning') return []
  const object = namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
  const node = kind.endsWith('Route') ? `route ${object}` : object
  return conditions.map((condition) => {
    const code = /\[(PX\d{4})\]$/.exec(condition)?.[1] ?? null
    return { severity, code, message: `${object}: ${condition.replace(/ \[PX\d{4}\]$/, '')}`, object: node, pod: null }
  })
}

/** Calls a function at most once in a time. */
function cached<T>(read: () => Promise<T>, ms: number): () => Promise<T> {
  let last: { readonly atMs: number; readonly value: Promise<T> } | undefined
  return () => {
    if (last === undefined || performance.now() - last.atMs >= ms) last = { atMs: performance.now(), value: read() }
    return last.value
  }
}

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [program: string, ...args: string[]]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}

/** Opens a page in the browser; without one, the user opens the printed address. */
function openBrowser(url: string): void {
  const [program, ...args] = openers[process.platform] ?? ['xdg-open']
  spawn(program, [...args, url], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref()
}
