import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { createServer, type Server as HttpServer } from 'node:http'
import type { Server, Socket } from 'node:net'
import type { Logging } from '../../observe/telemetry/log.ts'
import { createAdminApp, type AdminOptions } from './admin.ts'
import type { ConfigDump } from './dump.ts'
import { authorityOf } from '../../http/message.ts'
import { listen, type Endpoint, type HostPort, type ManagementAddresses } from './listen.ts'
import { createProxyHeaderServer } from './proxy-header.ts'
import { createReadinessApp } from './readiness.ts'
import { createStatsApp, type MetricsSource } from './stats.ts'

export interface ManagementOptions {
  readonly addresses: ManagementAddresses
  /** Parts that readiness still waits for; empty: ready. */
  readiness(): readonly string[]
  /** The config in force: `{ ...store.snapshot(), config }`. Redacted here. */
  configDump(): ConfigDump
  /** As `AdminOptions.explainRoute`. */
  explainRoute(namespace: string, name: string): readonly unknown[] | Promise<readonly unknown[]>
  /** As `AdminOptions.trace`; default: records nothing. */
  trace?: AdminOptions['trace']
  readonly metrics: MetricsSource
  /** As `AdminOptions.workerMemory`. */
  workerMemory?: AdminOptions['workerMemory']
  /** As in AdminOptions. */
  loadConsole?: AdminOptions['loadConsole']
  /** As in AdminOptions. */
  consoleFiles?: AdminOptions['consoleFiles']
  /** As in AdminOptions. */
  readonly token?: AdminOptions['token']
  readonly logging: Logging
  /** Whether this process opened the other side of a connection; `isExact`: only if it surely did. Default: it never does. */
  isOwn?(socket: Socket, isExact: boolean): boolean
  /** Called once per `POST /quitquitquit`. */
  onQuit(): void
}

export interface Management {
  /** Address of each endpoint, with the port in use. */
  readonly addresses: ManagementAddresses
  close(): Promise<void>
}

/** Milliseconds that running requests get to finish when the endpoints close. */
const CLOSE_GRACE_MS = 500

/**
 * Starts the management endpoints (traffic.md §12): admin, stats and readiness, each on its own address. Rejects with an AddressError,
 * and starts none, if one of them cannot listen.
 */
export async function startManagement(options: ManagementOptions): Promise<Management> {
  const { logging, addresses } = options
  const open: (() => Promise<void>)[] = []
  const start = async (endpoint: Endpoint, app: Hono): Promise<HostPort> => {
    // Probes and scrapers of this machine have its addresses, too, and must not be taken for the process.
    const http = createHttpServer(app, (socket) => options.isOwn?.(socket, endpoint !== 'admin') === true)
    // Only load balancers send PROXY protocol, and they call only readiness.
    const server: Server = endpoint === 'readiness' ? createProxyHeaderServer(http) : http
    const address = await listen(server, addresses[endpoint], endpoint)
    open.push(() => closeServer(server, http))
    return address
  }
  const close = async (): Promise<void> => {
    await Promise.all(open.splice(0).map((closeOne) => closeOne()))
  }
  try {
    let admin: HostPort = addresses.admin
    admin = await start('admin', createAdminApp({ trace: () => Promise.resolve(undefined), ...options, listening: () => admin }))
    const stats = await start('stats', createStatsApp(options.metrics))
    const readiness = await start(
      'readiness',
      createReadinessApp(() => options.readiness()),
    )
    logging.logger('admin').info('management endpoints listen', {
      admin: authorityOf(admin.host, admin.port),
      stats: authorityOf(stats.host, stats.port),
      readiness: authorityOf(readiness.host, readiness.port),
    })
    return { addresses: { admin, stats, readiness }, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Connections that this process opened itself are closed: whatever made it call its management ports, no request does. */
function createHttpServer(app: Hono, isOwn: (socket: Socket) => boolean): HttpServer {
  const handle = getRequestListener(app.fetch, { overrideGlobalObjects: false })
  return createServer({ requestTimeout: 10_000, headersTimeout: 5000, keepAliveTimeout: 5000 }, (request, response) => {
    if (isOwn(request.socket)) request.socket.destroy()
    else void handle(request, response)
  })
}

function closeServer(server: Server, http: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => http.closeAllConnections(), CLOSE_GRACE_MS)
    server.close(() => {
      clearTimeout(cut)
      resolve()
    })
    // Behind a PROXY header server, the HTTP server is closed for its idle connections and timers.
    if (server !== http) http.close(() => undefined)
    else http.closeIdleConnections()
  })
}
