import { createServer, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { ClientCapabilities } from '@modelcontextprotocol/sdk/types.js'
import { waitUntil } from '../../../../e2e/harness/wait.ts'
import { startPortForwarder, type PortForwarder } from '../../../testing/port-forwarder.ts'
import { startGateway, staticTarget, type GatewayOptions, type McpGateway } from './gateway.ts'
import { modernCall, modernHeaders, type ModernOptions } from './modern.ts'
import { startModernServer, type ModernServer, type ModernServerOptions } from './modern-server.ts'
import { startSdkServer, type SdkServer } from './sdk-server.ts'
import { closeServer, readJson, startUpstream, type TestUpstream, type UpstreamOptions } from './server.ts'
import { defineBasics } from './tools.ts'

type Definition = Parameters<typeof startUpstream>[0]

/** Opens gateways, servers and clients for a test. `close` closes them in reverse order. */
export class TestBed {
  readonly #opened: (() => Promise<unknown>)[] = []

  async close(): Promise<void> {
    for (const close of this.#opened.splice(0).reverse()) await close()
  }

  onClose(close: () => Promise<unknown>): void {
    this.#opened.push(close)
  }

  async upstream(define: string | Definition, options?: UpstreamOptions): Promise<TestUpstream> {
    const upstream = await startUpstream(typeof define === 'string' ? defineBasics(define) : define, options)
    this.onClose(() => upstream.close())
    return upstream
  }

  /** A server of the revision without sessions. */
  async modern(name: string, options?: ModernServerOptions): Promise<ModernServer> {
    const server = await startModernServer(name, options)
    this.onClose(() => server.close())
    return server
  }

  /** A server of the official SDK, second generation. */
  async sdk(name: string, options?: Parameters<typeof startSdkServer>[1]): Promise<SdkServer> {
    const server = await startSdkServer(name, options)
    this.onClose(() => server.close())
    return server
  }

  /** A server that passes requests on to the port that `portOf` returns, or responds itself. */
  relay(portOf: () => number | undefined, refuse: (response: ServerResponse) => void = () => undefined): Promise<AddressInfo> {
    return this.scripted((request, response, body) => {
      const port = portOf()
      if (port === undefined) return refuse(response)
      const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => name !== 'content-length' && name !== 'connection'))
      void send(new URL(`http://127.0.0.1:${port}/mcp`), request.method ?? '', headers as Record<string, string>, body).then(
        ({ status, headers: answered, text }) => {
          const kept = ['content-type', 'mcp-session-id'].flatMap((name) => (answered[name] === undefined ? [] : [[name, String(answered[name])]]))
          response.writeHead(status, Object.fromEntries(kept) as Record<string, string>).end(text)
        },
      )
    })
  }

  /** A port in front of a server that is stopped and restarted. */
  async forwarder(to: number): Promise<PortForwarder> {
    const forwarder = await startPortForwarder(to)
    this.onClose(() => forwarder.close())
    return forwarder
  }

  /** A gateway of a server of the revision without sessions and of older ones, and the name of the tool `echo` of the first there. */
  async federation(options: ModernServerOptions, others: readonly string[]): Promise<{ server: ModernServer; gateway: McpGateway; url: URL; tool: string }> {
    const server = await this.modern('new', options)
    const more = await Promise.all(others.map(async (name) => staticTarget(name, (await this.upstream(name)).port)))
    const gateway = await this.gateway({ mcp: { targets: [staticTarget('a', server.port), ...more] } })
    return { server, gateway, url: gateway.url, tool: more.length === 0 ? 'echo' : 'a_echo' }
  }

  async gateway(options: GatewayOptions): Promise<McpGateway> {
    const gateway = await startGateway(options)
    this.onClose(() => gateway.close())
    return gateway
  }

  /** A connected client of the SDK. */
  async client(gateway: { readonly url: URL }, { capabilities = {}, prepare }: { capabilities?: ClientCapabilities; prepare?: (client: Client) => void } = {}) {
    const client = new Client({ name: 'test', version: '1' }, { capabilities })
    prepare?.(client)
    const transport = new StreamableHTTPClientTransport(gateway.url)
    await client.connect(transport)
    this.onClose(() => client.close())
    return Object.assign(client, { mcp: transport })
  }

  /** An upstream with a handler of the test, which receives the parsed body. */
  async scripted(answer: (request: IncomingMessage, response: ServerResponse, body: ScriptedBody | undefined) => void): Promise<AddressInfo> {
    const server = createServer((request, response) => {
      void readJson(request).then((body) => answer(request, response, body as ScriptedBody | undefined))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    this.onClose(() => closeServer(server))
    return server.address() as AddressInfo
  }

  /** An upstream that responds with JSON: the result of `resultOf`, or an `initialize` result if that is undefined. */
  answering(resultOf: (body: ScriptedBody) => object | undefined, { sessionId = 's1' } = {}): Promise<AddressInfo> {
    return this.scripted((request, response, body) => {
      if (body?.id === undefined) return void response.writeHead(request.method === 'GET' ? 405 : 202).end()
      const result = resultOf(body) ?? initialized
      response.writeHead(200, { 'content-type': 'application/json', ...(body.method === 'initialize' ? { 'mcp-session-id': sessionId } : {}) })
      response.end(JSON.stringify('jsonrpc' in result ? result : { jsonrpc: '2.0', id: body.id, result }))
    })
  }
}

const initialized = { protocolVersion: '2025-06-18', serverInfo: { name: 's', version: '1' }, capabilities: { tools: {}, prompts: {}, resources: {} } }

export interface ScriptedBody {
  readonly id?: number | string
  readonly method?: string
  readonly params?: Record<string, unknown>
}

export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The first JSON-RPC message of the body. */
  readonly json: { readonly id?: unknown; readonly result?: Record<string, unknown>; readonly error?: { code: number; message: string; data?: unknown } }
}

export const MCP_HEADERS = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }

/** Sends a request with exactly these headers. */
export function send(url: URL, method: string, headers: Record<string, string | string[]> = {}, body?: unknown, path?: string): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: url.hostname, port: url.port, path: path ?? url.pathname + url.search, method, headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: messageIn(text) }))
    })
    request.on('error', reject)
    request.end(body === undefined ? undefined : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body))
  })
}

/** Starts a request. The function that it returns closes the connection. */
export function sendAndLeave(url: URL, headers: Record<string, string>, body: object): () => void {
  const request = httpRequest({ host: url.hostname, port: url.port, path: url.pathname, method: 'POST', headers, agent: false })
  request.on('error', () => undefined)
  request.end(JSON.stringify(body))
  return () => void request.destroy()
}

/** Sends a request of the revision without sessions. */
export function sendModern(url: URL, method: string, params: Record<string, unknown> = {}, options: ModernOptions = {}): Promise<RawAnswer> {
  return send(url, 'POST', { ...modernHeaders(method, params), ...options.headers }, modernCall(method, params, options))
}

function messageIn(text: string): RawAnswer['json'] {
  try {
    return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text) as RawAnswer['json']
  } catch {
    return {}
  }
}

export const call = (method: string, params: Record<string, unknown> = {}, id: number | string = 1) => ({ jsonrpc: '2.0', id, method, params })
export const initialize = (version = '2025-06-18', capabilities = {}) =>
  call('initialize', { protocolVersion: version, capabilities, clientInfo: { name: 'raw', version: '1' } }, 'init')

/** Starts a session without the SDK. All its requests have the headers `own`. */
export async function begin(
  url: URL,
  own: Record<string, string> = {},
): Promise<{ id: string; post: (body: unknown, headers?: Record<string, string>) => Promise<RawAnswer> }> {
  const answer = await send(url, 'POST', { ...MCP_HEADERS, ...own }, initialize())
  const id = String(answer.headers['mcp-session-id'] ?? '')
  if (id === '') throw new Error(`no session: ${answer.status} ${answer.text}`)
  const post = (body: unknown, headers: Record<string, string> = {}) => send(url, 'POST', { ...MCP_HEADERS, ...own, 'mcp-session-id': id, ...headers }, body)
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' })
  return { id, post }
}

/** Waits until the condition holds. `what` names it in the error. */
export const until = (what: string, holds: () => boolean, ms = 60_000): Promise<void> => waitUntil(what, holds, ms)
