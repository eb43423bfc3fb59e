import { isJsonObject, parseJson, verbatimNumbers, type JsonObject } from '#api/json/index.ts'

const TIMEOUT_MS = 30_000
const MAX_PAGES = 64
const MAX_CHARACTERS = 16 * 1024 * 1024
const VERSION = '2025-11-25'
const MODERN_VERSION = '2026-07-28'
const META = 'io.modelcontextprotocol/'
const client = { name: 'proxyctl', version: '1' }

/** An MCP server, by the name of its target. */
export interface McpServer {
  readonly target: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** Reads all tools of a server over Streamable HTTP, of any revision. Numbers in schemas are kept as written. Rejects with an Error that names the cause. */
export async function readTools(server: McpServer): Promise<readonly JsonObject[]> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const session = await openSession(server, signal)
    const tools: JsonObject[] = []
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const result = await request(server, session, 'tools/list', cursor === undefined ? {} : { cursor }, signal)
      const list = result['tools']
      if (!Array.isArray(list) || !list.every((tool): tool is JsonObject => isJsonObject(tool) && typeof tool['name'] === 'string'))
        throw new Error('the result of tools/list has no list of tools')
      tools.push(...list)
      cursor = result['nextCursor']
      if (typeof cursor !== 'string' || cursor === '') break
    }
    if (session.id !== undefined) await send(server, session, { method: 'DELETE' }, signal).then(cancel, () => undefined)
    return tools
  } catch (error) {
    throw new Error(`server ${server.target} at ${server.url}: ${reasonOf(error)}`, { cause: error })
  }
}

function reasonOf(error: unknown): string {
  const { name, message, cause } = error as { readonly name?: string; readonly message?: string; readonly cause?: { readonly message?: string } }
  if (name === 'TimeoutError') return `no response within ${TIMEOUT_MS / 1000} s`
  return cause?.message === undefined ? String(message) : `${String(message)}: ${cause.message}`
}

interface Session {
  readonly id: string | undefined
  readonly version: string
}

/** Initializes a session. A server that rejects `initialize` speaks the revision without sessions. */
async function openSession(server: McpServer, signal: AbortSignal): Promise<Session> {
  const params = { protocolVersion: VERSION, capabilities: {}, clientInfo: client }
  const none: Session = { id: undefined, version: VERSION }
  const response = await send(server, none, { method: 'POST', body: { jsonrpc: '2.0', id: 1, method: 'initialize', params } }, signal)
  if (response.status === 400 || response.status === 404) {
    await cancel(response)
    return { id: undefined, version: MODERN_VERSION }
  }
  const result = resultOf(await readMessage(response))
  const version = result['protocolVersion']
  const session = { id: response.headers.get('mcp-session-id') ?? undefined, version: typeof version === 'string' ? version : VERSION }
  await cancel(await send(server, session, { method: 'POST', body: { jsonrpc: '2.0', method: 'notifications/initialized' } }, signal))
  return session
}

async function request(server: McpServer, session: Session, method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
  const meta = { [`${META}protocolVersion`]: MODERN_VERSION, [`${META}clientInfo`]: client, [`${META}clientCapabilities`]: {} }
  const isModern = session.version === MODERN_VERSION
  const body = { jsonrpc: '2.0', id: 2, method, params: isModern ? { ...params, _meta: meta } : params }
  return resultOf(await readMessage(await send(server, session, { method: 'POST', body }, signal)))
}

function send(
  { url, headers }: McpServer,
  { id, version }: Session,
  { method, body }: { readonly method: string; readonly body?: JsonObject },
  signal: AbortSignal,
): Promise<Response> {
  const isModern = version === MODERN_VERSION
  return fetch(url, {
    method,
    signal,
    headers: {
      accept: 'application/json, text/event-stream',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(body?.['method'] !== 'initialize' && { 'mcp-protocol-version': version }),
      ...(isModern && { 'mcp-method': String(body?.['method']) }),
      ...(id !== undefined && { 'mcp-session-id': id }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

const cancel = async (response: Response): Promise<void> => void (await response.body?.cancel())

/** The first message of the response that is a response itself. */
async function readMessage(response: Response): Promise<JsonObject> {
  if (!response.ok) {
    await cancel(response)
    throw new Error(`status ${response.status}`)
  }
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > MAX_CHARACTERS) throw new Error(`the response is longer than ${MAX_CHARACTERS} characters`)
    const message = isStream && /(?:\r\n|\r|\n){2}$/.test(text) ? responseIn(text) : undefined
    // The server may keep the stream open.
    if (message !== undefined) return message
  }
  const message = isStream ? responseIn(text) : parse(text)
  if (message === undefined) throw new Error('the response is no MCP message')
  return message
}

function responseIn(text: string): JsonObject | undefined {
  for (const event of text.split(/\r\n\r\n|\n\n|\r\r/)) {
    const data = event
      .split(/\r\n|\r|\n/)
      .flatMap((line) => (line.startsWith('data:') ? [line.slice(line.startsWith('data: ') ? 6 : 5)] : []))
      .join('\n')
    const message = data === '' ? undefined : parse(data)
    if (message !== undefined && message['method'] === undefined) return message
  }
  return undefined
}

function parse(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text, { numbers: verbatimNumbers })
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function resultOf({ result, error }: JsonObject): JsonObject {
  if (isJsonObject(error)) throw new Error(`error ${String(error['code'])}: ${String(error['message'])}`)
  if (!isJsonObject(result)) throw new Error('the response has no result')
  return result
}
