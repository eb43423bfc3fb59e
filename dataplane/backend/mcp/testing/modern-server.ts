import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MODERN, modernHeaders } from './modern.ts'
import { closeServer, readJson } from './server.ts'

interface Body {
  readonly id?: number | string
  readonly method?: string
  readonly params?: Record<string, unknown>
}

/** A request that the server received. */
interface Received {
  readonly method: string
  readonly headers: IncomingMessage['headers']
  readonly body: Body | undefined
}

export interface ModernServerOptions {
  readonly ttlMs?: number
  readonly cacheScope?: 'public' | 'private'
  /** Handles some methods in place of the server: returns the result, or undefined. */
  readonly handle?: (body: Body) => object | undefined
  /** Tools besides `echo` and `ask`. Arguments with `x-mcp-header` are compared with their headers. */
  readonly tools?: readonly { readonly name: string; readonly inputSchema: object }[]
  /** Responds to requests with JSON instead of event streams. */
  readonly isJson?: boolean
  /** Default: true. */
  readonly listens?: boolean
}

const holding = (open: object): Pick<ModernServerOptions, 'handle'> => ({
  handle: ({ method }) => (method === 'tools/call' ? { isOpen: true, ...open } : undefined),
})

/** Servers that withhold the results of calls, and what follows "a call" in titles. */
export const holdingServers: readonly (readonly [what: string, options: ModernServerOptions])[] = [
  ['', holding({})],
  [' whose response has no head yet', holding({ hasHead: false })],
  [' whose response is JSON', { ...holding({}), isJson: true }],
]

/** The same, each alone and with another target. */
export const holdingTargets = holdingServers.flatMap(([what, options]): [what: string, others: string[], options: ModernServerOptions][] => [
  [what, [], options],
  [` of several targets${what}`, ['b'], options],
])

/** A server of revision 2026-07-28 only, which rejects what the revision does not allow. */
export interface ModernServer {
  readonly port: number
  readonly received: Received[]
  /** Methods of the messages, in order. */
  readonly log: () => string[]
  /** Open streams of `subscriptions/listen`, by request id. */
  readonly streams: Set<{ readonly id: number | string; readonly response: ServerResponse }>
  /** Number of such streams that ended. */
  ended: number
  /** Calls whose result is withheld: `handle` returned `isOpen`. With `hasHead: false` the head of the response is too. */
  readonly open: ServerResponse[]
  close(): Promise<void>
}

const PREFIX = 'io.modelcontextprotocol/'
const SUBSCRIPTION = `${PREFIX}subscriptionId`

export async function startModernServer(name: string, options: ModernServerOptions = {}): Promise<ModernServer> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    void readJson(request).then((value) => {
      const body = value as Body | undefined
      received.push({ method: request.method ?? '', headers: request.headers, body })
      answer(modern, name, options, request, response, body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const modern: ModernServer = {
    port: (server.address() as AddressInfo).port,
    received,
    log: () => received.map(({ method, body }) => (method === 'POST' ? (body?.method ?? 'response') : method)),
    streams: new Set(),
    ended: 0,
    open: [],
    close: () => closeServer(server),
  }
  return modern
}

function answer(
  modern: ModernServer,
  name: string,
  options: ModernServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  body: Body | undefined,
): void {
  const fail = (status: number, code: number, message: string, data?: object): void =>
    void response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', ...(body?.id !== undefined && { id: body.id }), error: { code, message, ...(data && { data }) } }))
  if (request.method !== 'POST' || body?.method === undefined) return void response.writeHead(405, { allow: 'POST' }).end()
  const { id, method, params = {} } = body
  const expected = modernHeaders(method, params)
  const wrong = ['mcp-protocol-version', 'mcp-method', 'mcp-name'].find(
    (header) => request.headers[header] !== expected[header] && (header !== 'mcp-name' || expected[header] !== undefined),
  )
  if (wrong !== undefined) return fail(400, -32020, `${wrong} is ${String(request.headers[wrong])}`)
  if (request.headers['mcp-session-id'] !== undefined) return fail(400, -32020, 'there are no sessions')
  const meta = (params['_meta'] ?? {}) as Record<string, unknown>
  if (meta[`${PREFIX}protocolVersion`] !== MODERN || typeof meta[`${PREFIX}clientCapabilities`] !== 'object') return fail(400, -32602, '_meta is incomplete')
  const wrongParam = method === 'tools/call' ? wrongHeader(options, request, params) : undefined
  if (wrongParam !== undefined) return fail(400, -32020, `${wrongParam} does not match`)
  if (id === undefined) return void response.writeHead(202).end()
  if (method === 'subscriptions/listen' && options.listens !== false) return listen(modern, response, id, params)
  const own = method === 'tools/list' ? { tools: [...['echo', 'ask'].map((tool) => ({ name: tool, inputSchema })), ...(options.tools ?? [])] } : undefined
  const result = options.handle?.(body) ?? own ?? resultOf(name, method, params)
  if (result === undefined) return fail(404, -32601, `no method ${method}`)
  if ('isOpen' in result) {
    modern.open.push(response)
    response.on('close', () => modern.open.splice(modern.open.indexOf(response), 1))
    if ('hasHead' in result && result.hasHead === false) return
    return response.writeHead(200, { 'content-type': options.isJson === true ? 'application/json' : 'text/event-stream' }).flushHeaders()
  }
  if ('code' in result) return fail(200, Number(result.code), 'own error')
  const isCacheable = ['server/discover', 'tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'resources/read'].includes(method)
  const text = JSON.stringify({
    jsonrpc: '2.0',
    id,
    result: {
      resultType: 'complete',
      ...(isCacheable && { ttlMs: options.ttlMs ?? 0, cacheScope: options.cacheScope ?? 'private' }),
      _meta: { [`${PREFIX}serverInfo`]: { name, version: '2' } },
      ...result,
    },
  })
  if (options.isJson === true) return void response.writeHead(200, { 'content-type': 'application/json' }).end(text)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const progressToken = meta['progressToken']
  if (progressToken !== undefined) response.write(event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } }))
  response.end(`event: message\ndata: ${text}\n\n`)
}

/** The header that does not repeat an argument as the schema of the tool requires. */
function wrongHeader({ tools = [] }: ModernServerOptions, request: IncomingMessage, params: Record<string, unknown>): string | undefined {
  const { properties = {} } = (tools.find((tool) => tool.name === params['name'])?.inputSchema ?? {}) as { properties?: Record<string, object> }
  for (const [name, property] of Object.entries(properties)) {
    const header = (property as Record<string, string>)['x-mcp-header']
    const value = (params['arguments'] as Record<string, string | undefined> | undefined)?.[name]
    const sent = header === undefined ? undefined : request.headers[`mcp-param-${header.toLowerCase()}`]
    const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(String(sent)) ?? []
    const decoded = encoded === undefined ? sent : Buffer.from(encoded, 'base64').toString()
    if (header !== undefined && decoded !== value) return header
  }
  return undefined
}

const event = (message: object): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`

/** Sends a notification on all open streams. */
export function notify({ streams }: ModernServer, method: string, params: object = {}): void {
  for (const { id, response } of streams) response.write(event({ jsonrpc: '2.0', method, params: { ...params, _meta: { [SUBSCRIPTION]: id } } }))
}

function listen(modern: ModernServer, response: ServerResponse, id: number | string, params: Record<string, unknown>): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const stream = { id, response }
  modern.streams.add(stream)
  response.on('close', () => {
    modern.streams.delete(stream)
    modern.ended++
  })
  const acknowledged = { _meta: { [SUBSCRIPTION]: id }, notifications: params['notifications'] }
  response.write(event({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: acknowledged }))
}

const inputSchema = { type: 'object' }

function resultOf(name: string, method: string, params: Record<string, unknown>): object | undefined {
  switch (method) {
    case 'server/discover':
      return {
        supportedVersions: [MODERN],
        capabilities: { tools: { listChanged: true }, prompts: {}, resources: { subscribe: true }, completions: {} },
        instructions: `Use ${name}.`,
      }
    case 'tools/call':
      return callTool(name, params)
    case 'prompts/list':
      return { prompts: [{ name: 'greet' }] }
    case 'prompts/get':
      return { messages: [{ role: 'user', content: { type: 'text', text: `${name} greets` } }] }
    case 'resources/list':
      return { resources: [{ uri: 'memo:x', name: 'memo' }] }
    case 'resources/templates/list':
      return { resourceTemplates: [{ uriTemplate: 'num://{n}', name: 'numbered' }] }
    case 'resources/read':
      return { contents: [{ uri: params['uri'], text: `${name} ${String(params['uri'])}` }] }
    case 'completion/complete':
      return { completion: { values: [name] } }
    default:
      return undefined
  }
}

/** The tool `ask` requires an elicitation; any other one echoes its argument `text`. */
function callTool(server: string, { name, arguments: args, inputResponses, requestState }: Record<string, unknown>): object {
  if (name !== 'ask') return { content: [{ type: 'text', text: `${server}: ${(args as { text?: string } | undefined)?.text ?? ''}` }] }
  if (requestState === 'asked') return { content: [{ type: 'text', text: JSON.stringify(inputResponses) }] }
  const requestedSchema = { type: 'object', properties: { who: { type: 'string' } } }
  return {
    resultType: 'input_required',
    requestState: 'asked',
    inputRequests: { who: { method: 'elicitation/create', params: { message: 'Who?', requestedSchema } } },
  }
}
