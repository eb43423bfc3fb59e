import { Hono } from 'hono'
import { checkConfig } from './config.ts'
import type { Plugin, PluginHooks, PluginKv, PluginLog, PluginMetrics } from './index.ts'

/** What a test gives to the plugin. */
export interface TestOptions<Config> {
  /** `config` of the policy. It is checked against `configSchema`, whose defaults are added. Default: `{}`. */
  readonly config?: Config
  /** Values of `secrets` of the policy, by name. */
  readonly secrets?: Readonly<Record<string, string>>
  /** Responds to the plugin's `fetch`. Default: every call rejects. */
  readonly fetch?: (request: Request) => Response | Promise<Response>
  /** `body` of the policy. With `None`, the default, reading a body is an error; with `Streamed`, the request body must be passed on if it is read. */
  readonly body?: 'None' | 'Buffered' | 'Streamed'
  /** Milliseconds, for `ttl` of `kv`. Default: the time of the machine. */
  readonly now?: () => number
}

/** Responds like the rest of the chain and the upstream. Default: 200 without a body. */
export type Upstream = (request: Request) => Response | Promise<Response>

/** One request through the plugin. */
export interface TestExchange {
  /** What the client receives. */
  readonly response: Response
  /** What the upstream received; undefined: the plugin responded itself. */
  readonly forwarded: Request | undefined
}

/** A plugin after `setup`. */
export interface PluginTester {
  /** Sends a request, or a GET to a path of `http://localhost`. Rejects with the error of the plugin. */
  send(request: Request | string, options?: { readonly init?: RequestInit; readonly upstream?: Upstream }): Promise<TestExchange>
  /** Everything that `setup` returned. */
  readonly hooks: PluginHooks
  /** Lines that the plugin logged, such as `warn: no answer`. */
  readonly logs: readonly string[]
  /** Sums of `metrics.count` by event, with the detail after a space, such as `denied GET`. */
  readonly counts: ReadonlyMap<string, number>
  /** Amounts of `metrics.observe` by value, with the detail after a space. */
  readonly observed: ReadonlyMap<string, readonly number[]>
  readonly kv: PluginKv
}

/** The part of an HTTP archive (HAR 1.2) that is replayed. Browsers and many proxies write such files. */
export interface HttpArchive {
  readonly log: { readonly entries: readonly HttpArchiveEntry[] }
}

interface HttpArchiveEntry {
  readonly request: {
    readonly method: string
    readonly url: string
    readonly headers: readonly NameAndValue[]
    readonly postData?: { readonly text?: string }
  }
  readonly response: {
    readonly status: number
    readonly headers: readonly NameAndValue[]
    readonly content: { readonly text?: string; readonly encoding?: string }
  }
}

interface NameAndValue {
  readonly name: string
  readonly value: string
}

interface Bindings {
  readonly upstream: Upstream
  readonly original: Request
  readonly body: Uint8Array<ArrayBuffer> | undefined
  readonly isStreamed: boolean
  forwarded?: Request
}

/**
 * Runs `setup` of a plugin, with values in memory in place of those of the gateway. There are no limits of time, memory and sizes.
 * Rejects if the config does not match `configSchema`.
 *
 * @example
 * const { send } = await testPlugin(plugin, { config: { tenants: ['a'] } })
 * const { response, forwarded } = await send('/', { init: { headers: { 'x-tenant': 'b' } } })
 * assert.deepEqual([response.status, forwarded], [403, undefined])
 */
export async function testPlugin<Config>(plugin: Plugin<Config>, options: TestOptions<Config> = {}): Promise<PluginTester> {
  const config = structuredClone(options.config ?? {}) as Config
  checkConfig(plugin.configSchema, config)
  const { fetch: respond, secrets = {}, body: bodyMode = 'None', now = Date.now } = options
  const logs: string[] = []
  const counts = new Map<string, number>()
  const observed = new Map<string, number[]>()
  const kv = createKv(now)
  const hooks = await plugin.setup({
    config,
    log: createLog(logs),
    metrics: createMetrics(counts, observed),
    kv,
    secrets: Object.freeze({ ...secrets }),
    fetch: async (input, init) => {
      const request = new Request(input, init)
      if (respond === undefined) throw new TypeError(`${request.url}: the test gives no fetch; set it in the options of testPlugin`)
      return respond(request)
    },
  })
  const app = createApp(hooks)
  return {
    hooks,
    logs,
    counts,
    observed,
    kv,
    async send(target, { init, upstream = () => new Response() } = {}) {
      const given = typeof target === 'string' ? new Request(new URL(target, 'http://localhost'), init) : new Request(target, init)
      const body = given.body === null ? undefined : new Uint8Array(await given.arrayBuffer())
      const shown = body === undefined ? null : bodyMode === 'None' ? unreadable() : body
      const original = new Request(given.url, { method: given.method, headers: given.headers, body: shown, duplex: 'half' })
      const bindings: Bindings = { upstream, original, body, isStreamed: bodyMode === 'Streamed' }
      const response = await app.fetch(original, bindings)
      return { response, forwarded: bindings.forwarded }
    },
  }
}

/** Sends the recorded requests one after the other; the recorded responses are those of the upstream. Throws a TypeError for other values than an HTTP archive. */
export async function replay({ send }: PluginTester, archive: HttpArchive): Promise<TestExchange[]> {
  if (!Array.isArray(archive?.log?.entries)) throw new TypeError('not an HTTP archive (HAR): log.entries is not a list')
  const exchanges: TestExchange[] = []
  for (const { request, response } of archive.log.entries) {
    const { method, url, headers, postData } = request
    const hasBody = postData?.text !== undefined && method !== 'GET' && method !== 'HEAD'
    const init = { method, headers: toHeaders(headers), ...(hasBody && { body: postData.text }) }
    exchanges.push(await send(new Request(url, init), { upstream: () => toResponse(response) }))
  }
  return exchanges
}

function createApp(hooks: PluginHooks): Hono<{ Bindings: Bindings }> {
  const app = new Hono<{ Bindings: Bindings }>()
  const { request }: Partial<PluginHooks> = hooks
  if (request !== undefined) app.use('*', request)
  app.all('*', async (c) => {
    const { env } = c
    const { raw } = c.req
    if (env.isStreamed && raw === env.original && raw.bodyUsed)
      throw new Error("the plugin read the request body and did not pass it on; set c.req.raw = new Request(c.req.raw, { body, duplex: 'half' })")
    const body = raw === env.original ? env.body : raw.body === null ? undefined : await raw.arrayBuffer()
    env.forwarded = new Request(raw.url, { method: raw.method, headers: raw.headers, ...(body !== undefined && { body }) })
    const response = await env.upstream(env.forwarded.clone())
    return c.newResponse(response.body, response)
  })
  app.onError((error) => {
    if ('getResponse' in error && typeof error.getResponse === 'function') return error.getResponse()
    throw error
  })
  return app
}

const unreadable = (): ReadableStream =>
  new ReadableStream(
    { pull: (controller) => controller.error(new Error('the plugin cannot read bodies; set body: Buffered or Streamed')) },
    { highWaterMark: 0 },
  )

function createLog(lines: string[]): PluginLog {
  const toText = (part: unknown): string => (typeof part === 'string' ? part : part instanceof Error ? String(part) : (JSON.stringify(part) ?? String(part)))
  const at =
    (level: string) =>
    (...parts: unknown[]): void =>
      void lines.push(`${level}: ${parts.map(toText).join(' ')}`)
  return { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') }
}

function createMetrics(counts: Map<string, number>, observed: Map<string, number[]>): PluginMetrics {
  const keyOf = (name: string, detail = ''): string => `${name} ${detail}`.trimEnd()
  return {
    count(event, { by = 1, detail } = {}) {
      const key = keyOf(event, detail)
      counts.set(key, (counts.get(key) ?? 0) + by)
    },
    observe(value, amount, { detail } = {}) {
      const key = keyOf(value, detail)
      observed.set(key, [...(observed.get(key) ?? []), amount])
    },
  }
}

function createKv(now: () => number): PluginKv {
  const entries = new Map<string, { readonly value: string; readonly endMs: number }>()
  const find = (key: string): { readonly value: string; readonly endMs: number } | undefined => {
    const entry = entries.get(key)
    if (entry === undefined || now() < entry.endMs) return entry
    entries.delete(key)
    return undefined
  }
  const endOf = (ttl: number | undefined): number => (ttl === undefined ? Infinity : now() + ttl * 1000)
  return {
    get: async (key) => find(key)?.value,
    set: async (key, value, { ttl } = {}) => void entries.set(key, { value, endMs: endOf(ttl) }),
    delete: async (key) => find(key) !== undefined && entries.delete(key),
    async increment(key, by = 1, { ttl } = {}) {
      const known = find(key)
      const sum = Number(known?.value ?? 0) + by
      if (!Number.isSafeInteger(sum)) throw new TypeError(`${JSON.stringify(key)} holds ${JSON.stringify(known?.value)}, which is not an integer`)
      entries.set(key, { value: String(sum), endMs: known?.endMs ?? endOf(ttl) })
      return sum
    },
  }
}

/** Without pseudo-headers of HTTP/2, which archives of browsers have, and without what describes the recorded bytes. */
function toHeaders(list: readonly NameAndValue[], isResponse = false): Headers {
  const headers = new Headers()
  for (const { name, value } of list) {
    const isOfBytes = isResponse && ['content-encoding', 'content-length', 'transfer-encoding'].includes(name.toLowerCase())
    if (!name.startsWith(':') && !isOfBytes) headers.append(name, value)
  }
  return headers
}

function toResponse({ status, headers, content: { text, encoding } }: HttpArchiveEntry['response']): Response {
  const body = text === undefined ? null : encoding === 'base64' ? Uint8Array.from(atob(text), (character) => character.charCodeAt(0)) : text
  return new Response([101, 204, 205, 304].includes(status) ? null : body, { status, headers: toHeaders(headers, true) })
}
