import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isLogLevel, type Log } from '../runtime/log.ts'

export interface EndpointsOptions {
  /** Host of health and metrics; undefined: all addresses of both families. */
  readonly host: string | undefined
  readonly ports: { readonly health: number; readonly metrics: number; readonly admin: number }
  /** Names of parts that are not ready yet; empty when ready. */
  readonly findMissing: () => readonly string[]
  /** Prometheus text. */
  readonly renderMetrics: () => string
  /** State for debugging: names only, no Secret and no config. */
  readonly dump: () => object
  /** Of the operator. */
  readonly version: string
  readonly log: Log
}

export interface Endpoints {
  readonly ports: EndpointsOptions['ports']
  close(): Promise<void>
}

/** Serves health, metrics, and the admin page on loopback (operator.md §7.1). Rejects when a port is taken. */
export async function serveEndpoints(options: EndpointsOptions): Promise<Endpoints> {
  const { host, ports } = options
  const servers: Server[] = []
  const close = async (): Promise<void> => {
    for (const server of servers) server.closeAllConnections()
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  }
  const open = async (name: string, at: string | undefined, port: number, listener: RequestListener): Promise<number> => {
    const server = createServer(listener)
    const place = at === undefined ? `port ${port}` : at.includes(':') ? `[${at}]:${port}` : `${at}:${port}`
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(new Error(`${name}: cannot listen on ${place}: ${error.message}`, { cause: error })))
      server.listen({ port, ...(at !== undefined && { host: at }) }, resolve)
    })
    servers.push(server)
    return (server.address() as AddressInfo).port
  }
  try {
    return {
      ports: {
        health: await open('health', host, ports.health, serveHealth(options.findMissing)),
        metrics: await open('metrics', host, ports.metrics, serveMetrics(options.renderMetrics)),
        // A pod may have addresses of IPv6 only.
        admin: await open('admin', '127.0.0.1', ports.admin, serveAdmin(options)).catch((error: Error) =>
          (error.cause as NodeJS.ErrnoException).code === 'EADDRNOTAVAIL' ? open('admin', '::1', ports.admin, serveAdmin(options)) : Promise.reject(error),
        ),
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

type Reply = Parameters<RequestListener>[1]

function reply(response: Reply, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type }).end(text)
}

function serveHealth(findMissing: () => readonly string[]): RequestListener {
  return (request, response) => {
    if (request.url?.split('?')[0] !== '/readyz') return reply(response, 404, 'not found; try /readyz\n')
    const missing = findMissing()
    if (missing.length === 0) reply(response, 200, 'ok\n')
    else reply(response, 503, `not ready, waiting for: ${missing.join(', ')}\n`)
  }
}

function serveMetrics(render: () => string): RequestListener {
  return (request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') return reply(response, 404, 'not found; try /metrics\n')
    reply(response, 200, render(), 'text/plain; version=0.0.4; charset=utf-8')
  }
}

const PAGE = [
  'GET /snapshot?pretty  names of all known objects (also /snapshots/krt)',
  'POST /logging?level=debug  error, warn, info, debug or trace; without level: which it is',
  'GET /version',
  '',
].join('\n')

function serveAdmin({ dump, log, version }: EndpointsOptions): RequestListener {
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    switch (pathname) {
      case '/':
        return reply(response, 200, PAGE)
      case '/version':
        return reply(response, 200, `${JSON.stringify({ version })}\n`, 'application/json')
      case '/snapshot':
      case '/snapshots/krt':
        return reply(response, 200, `${JSON.stringify(dump(), undefined, searchParams.has('pretty') ? 2 : undefined)}\n`, 'application/json')
      case '/logging': {
        if (request.method !== 'POST' && request.method !== 'PUT') return reply(response, 405, 'use POST or PUT\n')
        const unknown = [...searchParams.keys()].find((key) => key !== 'level')
        if (unknown !== undefined) return reply(response, 400, `component ${unknown} is not known; there is one level for all: use ?level=\n`)
        const level = searchParams.get('level')
        if (level !== null && !isLogLevel(level)) return reply(response, 400, `level ${level} is not known; use error, warn, info, debug or trace\n`)
        if (level !== null) log.setLevel(level)
        return reply(response, 200, `${log.level()}\n`)
      }
      default:
        return reply(response, 404, 'not found; GET / lists what there is\n')
    }
  }
}
