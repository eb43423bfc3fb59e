import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A web origin: a server with one empty page. */
export interface Site {
  readonly port: number
  close(): Promise<void>
}

export async function startSite(): Promise<Site> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html')
    response.end('<!doctype html><title>site</title>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = (): Promise<void> => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(() => resolve()))
  }
  return { port: (server.address() as AddressInfo).port, close }
}
