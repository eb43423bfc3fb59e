import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { closeServer, readJson } from './server.ts'

/** A server of the official SDK, second generation. */
export interface SdkServer {
  readonly port: number
  /** Methods of the messages, in order. */
  readonly log: string[]
  close(): Promise<void>
}

/** Starts a server with the tool `hello`. With `isStrict` it speaks revision 2026-07-28 only, otherwise older ones too. */
export async function startSdkServer(name: string, { isStrict = true } = {}): Promise<SdkServer> {
  const define = (): McpServer => {
    const server = new McpServer({ name, version: '2' })
    server.registerTool('hello', { description: 'Greets.' }, () => ({ content: [{ type: 'text', text: `${name} says hello` }] }))
    return server
  }
  const handler = createMcpHandler(define, { legacy: isStrict ? 'reject' : 'stateless' })
  const log: string[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const body = await readJson(request)
      log.push((body as { method?: string } | undefined)?.method ?? request.method ?? '')
      const headers = Object.entries(request.headers).map(([field, value]): [string, string] => [field, String(value)])
      const init = { method: request.method ?? 'GET', headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
      const answer = await handler.fetch(new Request(`http://127.0.0.1${request.url ?? '/'}`, init))
      response.writeHead(answer.status, Object.fromEntries(answer.headers))
      if (answer.body === null) response.end()
      else Readable.fromWeb(answer.body).pipe(response)
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, log, close: () => closeServer(server) }
}
