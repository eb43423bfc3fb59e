import { Hono, type Context, type HonoRequest } from 'hono'
import { getPath, getQueryParam } from 'hono/utils/url'
import type { HeaderList } from '../../../http/headers.ts'
import { isFieldValue, isToken } from '../../../http/syntax.ts'
import {
  changesOf,
  compare,
  isRead,
  toFieldMap,
  toMap,
  toRequest,
  toResponse,
  unpassed,
  type FieldMap,
  type SeenRequest,
  type SeenResponse,
} from './fetch-objects.ts'
import type { Fields, RequestChange, ResponseChange } from './messages.ts'
import type { PluginStreams } from './plugin-streams.ts'

type Answer = Response | Promise<Response>
type HeaderOptions = { readonly append?: boolean }

/** Hono does not export its class. Without `await`: a thread that is ended while modules wait for one at the top level of another ends the whole process. */
const HonoContext = contextClass()

function contextClass(): new (request: Request, options: object) => Context {
  let found: unknown
  const app = new Hono().all('*', (c) => {
    found = c.constructor
    return c.body(null)
  })
  // Hono calls the only handler of a path before it returns.
  void app.request('http://localhost/')
  return found as new (request: Request, options: object) => Context
}

/** What the context of a call shows: the exchange itself if the plugin runs in process, messages about it otherwise. */
export interface Subject {
  /** Describes the request as it is now. */
  seeRequest(): SeenRequest
  /** Describes the response of the chain. */
  seeResponse(): SeenResponse
  /** Header fields of this response; undefined if a plugin cannot change them. */
  readonly fields: HeaderList | undefined
  /** Whether a plugin may set or remove the field. */
  isChangeable(name: string): boolean
  /** Bodies that pass in chunks. */
  readonly streams: PluginStreams | undefined
}

/**
 * The context of a plugin: the same members as Hono's. Headers, URL and variables are read and written without a Request or Response. The first use of
 * another member creates Hono's own context, which handles all further calls.
 */
export class PluginContext {
  readonly env = {}
  error: Error | undefined = undefined
  readonly #subject: Subject
  #request: PluginRequest | undefined = undefined
  #seen: SeenRequest | undefined = undefined
  #full: Context | undefined = undefined
  #raw: Request | undefined = undefined
  #variables: Map<string, unknown> | undefined = undefined
  /** Headers for the response, until there is one: name, value, whether it is added. */
  #prepared: [name: string, value: string | undefined, isAppended: boolean][] | undefined = undefined
  #hasResponse = false
  /** Response of the chain as Hono's context has it. */
  #received: { readonly seen: SeenResponse; readonly headers: FieldMap; readonly body: ReadableStream | null } | undefined = undefined
  #isOver = false

  constructor(subject: Subject) {
    this.#subject = subject
  }

  /** Hono's context, if the plugin needed it. */
  get created(): Context | undefined {
    return this.#full
  }

  /** The request as it was when the plugin was called: policies behind the plugin may change the one of the exchange. */
  get seen(): SeenRequest {
    return (this.#seen ??= this.#subject.seeRequest())
  }

  /** Hono's context. */
  get full(): Context {
    if (this.#full !== undefined) return this.#full
    if (this.#isOver) throw new Error('the call of the plugin has ended')
    const { seen } = this
    const raw = (this.#raw = toRequest(seen, this.#subject.streams))
    const full = new HonoContext(raw, {
      env: this.env,
      path: getPath(raw),
      matchResult: [[]],
      notFoundHandler: (c: Context) => c.text('404 Not Found', 404),
    })
    this.#full = full
    for (const [name, value] of this.#variables ?? []) full.set(name as never, value as never)
    // Headers that were set before the response are in it already.
    if (this.#hasResponse) this.#accept(full, (response) => response)
    else for (const [name, value, append] of this.#prepared ?? []) full.header(name, value, { append })
    return full
  }

  /** What the plugin changed of the request; undefined: nothing. Called at `next()`. */
  changes(): Promise<RequestChange> | undefined {
    if (this.#full !== undefined && this.#raw !== undefined) return this.#changesOf(this.#raw, this.#full.req.raw)
    // Before policies behind the plugin change them.
    if (this.#request !== undefined) void this.seen
    return undefined
  }

  async #changesOf(received: Request, raw: Request): Promise<RequestChange> {
    const change = await changesOf(this.seen, received, raw)
    if (change.body === 'stream' && raw.body !== null) this.#subject.streams?.output('request', raw.body)
    return change
  }

  /** Called when there is a response. */
  receive(): void {
    this.#hasResponse = true
    const full = this.#full
    if (full !== undefined) {
      // Unlike a plain Response, it has the headers that the plugin set before next().
      return this.#accept(full, (upstream) => full.newResponse(upstream.body, upstream))
    }
    const prepared = this.#prepared
    if (prepared === undefined) return
    const { fields } = this.#subject
    const names = new Set(prepared.map(([name]) => name).filter((name) => fields?.has(name) === false))
    for (const [name, value, isAppended] of prepared) if (names.has(name)) this.#setHeader(name, value, isAppended)
  }

  /** Gives Hono's context the response of the chain. */
  #accept(full: Context, prepare: (upstream: Response) => Response): void {
    const seen = this.#subject.seeResponse()
    full.res = prepare(toResponse(seen, this.#subject.streams))
    this.#received = { seen, headers: toFieldMap(seen.headers), body: full.res.body }
  }

  /** What the plugin changed of the response in Hono's context; undefined: nothing. Ends the use of this context. */
  async end(): Promise<ResponseChange | undefined> {
    const full = this.#full
    const received = this.#received
    if (full === undefined || received === undefined) {
      this.#isOver = true
      return undefined
    }
    const { res } = full
    const { status } = received.seen
    const body = res.body === received.body ? this.#keep(received.seen, res) : await this.#replace(received.seen, res)
    this.#isOver = true
    return {
      ...compare(received.headers, toMap(res.headers)),
      ...(res.status === status ? {} : { status: res.status }),
      ...(body === undefined ? {} : { body }),
    }
  }

  #keep({ body }: SeenResponse, res: Response): undefined {
    if (body === 'stream' && isRead(res)) throw new Error(unpassed('response', 'c.res = new Response(body, c.res)'))
  }

  /** The body that the plugin made. */
  async #replace({ body }: SeenResponse, res: Response): Promise<Uint8Array | 'stream'> {
    if (body !== 'stream' || res.body === null) return new Uint8Array(await res.arrayBuffer())
    this.#subject.streams?.output('response', res.body)
    return 'stream'
  }

  /** Ends the use of this context by a call that failed. */
  close(): void {
    this.#isOver = true
  }

  #setHeader(name: string, value: string | undefined, isAppended: boolean): void {
    if (this.#isOver || !this.#subject.isChangeable(name)) return
    const { fields } = this.#subject
    if (value === undefined) fields?.remove(name)
    else if (isAppended) fields?.append(name, value)
    else fields?.set(name, value)
  }

  get req(): HonoRequest {
    return (this.#request ??= new PluginRequest(this)) as unknown as HonoRequest
  }

  get finalized(): boolean {
    return this.#full?.finalized ?? this.#hasResponse
  }

  get res(): Response {
    return this.full.res
  }

  set res(response: Response | undefined) {
    this.full.res = response
  }

  header(name: string, value?: string | number, options?: HeaderOptions): void {
    if (this.#full !== undefined) return this.#full.header(name, value === undefined ? undefined : String(value), options)
    const lower = name.toLowerCase()
    const trimmed = value === undefined ? undefined : String(value).trim()
    if (!isToken(lower)) throw new TypeError(`${JSON.stringify(name)} is not the name of a header`)
    if (trimmed !== undefined && !isFieldValue(trimmed)) throw new TypeError(`the value of header ${lower} has characters that headers cannot carry`)
    if (this.#hasResponse) this.#setHeader(lower, trimmed, options?.append === true)
    else (this.#prepared ??= []).push([lower, trimmed, options?.append === true])
  }

  set(name: string, value: unknown): void {
    if (this.#full === undefined) (this.#variables ??= new Map()).set(name, value)
    else this.#full.set(name as never, value as never)
  }

  get(name: string): unknown {
    return this.#full === undefined ? this.#variables?.get(name) : this.#full.get(name as never)
  }

  get var(): object {
    return this.#full?.var ?? Object.fromEntries(this.#variables ?? [])
  }

  get event(): unknown {
    return this.full.event
  }

  get executionCtx(): unknown {
    return this.full.executionCtx
  }

  status(...all: Parameters<Context['status']>): void {
    this.full.status(...all)
  }

  newResponse(...all: unknown[]): Answer {
    return (this.full.newResponse as (...values: unknown[]) => Answer)(...all)
  }

  body(...all: unknown[]): Answer {
    return (this.full.body as unknown as (...values: unknown[]) => Answer)(...all)
  }

  text(...all: unknown[]): Answer {
    return (this.full.text as unknown as (...values: unknown[]) => Answer)(...all)
  }

  json(...all: unknown[]): Answer {
    return (this.full.json as unknown as (...values: unknown[]) => Answer)(...all)
  }

  html(...all: unknown[]): Answer {
    return (this.full.html as unknown as (...values: unknown[]) => Answer)(...all)
  }

  redirect(...all: unknown[]): Answer {
    return (this.full.redirect as unknown as (...values: unknown[]) => Answer)(...all)
  }

  notFound(): Answer {
    return this.full.notFound()
  }

  render(...all: unknown[]): Answer {
    return (this.full.render as unknown as (...values: unknown[]) => Answer)(...all)
  }

  setRenderer(...all: unknown[]): void {
    ;(this.full.setRenderer as unknown as (...values: unknown[]) => void)(...all)
  }

  setLayout(layout: unknown): unknown {
    return this.full.setLayout(layout as never)
  }

  getLayout(): unknown {
    return this.full.getLayout()
  }
}

/** `c.req` of a PluginContext: the members of HonoRequest. */
class PluginRequest {
  readonly #context: PluginContext

  constructor(context: PluginContext) {
    this.#context = context
  }

  get raw(): Request {
    return this.#context.full.req.raw
  }

  set raw(request: Request) {
    this.#context.full.req.raw = request
  }

  get method(): string {
    return this.#context.created?.req.method ?? this.#context.seen.method
  }

  get url(): string {
    return this.#context.created?.req.url ?? this.#context.seen.url
  }

  get path(): string {
    return this.#context.created?.req.path ?? getPath({ url: this.#context.seen.url } as Request)
  }

  header(name?: string): unknown {
    const { created, seen } = this.#context
    if (created !== undefined || name === undefined) return this.#context.full.req.header(name as string)
    return join(seen.headers, name.toLowerCase())
  }

  query(name?: string): unknown {
    return getQueryParam(this.url, name)
  }

  queries(name?: string): unknown {
    return this.#context.full.req.queries(name as string)
  }

  param(name?: string): unknown {
    return name === undefined ? {} : undefined
  }

  json(): Promise<unknown> {
    return this.#context.full.req.json()
  }

  text(): Promise<string> {
    return this.#context.full.req.text()
  }

  arrayBuffer(): Promise<ArrayBuffer> {
    return this.#context.full.req.arrayBuffer()
  }

  bytes(): Promise<Uint8Array> {
    return this.#context.full.req.bytes()
  }

  blob(): Promise<Blob> {
    return this.#context.full.req.blob()
  }

  formData(): Promise<FormData> {
    return this.#context.full.req.formData()
  }

  parseBody(options?: object): Promise<unknown> {
    return this.#context.full.req.parseBody(options as never)
  }

  get bodyCache(): unknown {
    return this.#context.full.req.bodyCache
  }

  get routePath(): string {
    return '*'
  }

  get routeIndex(): number {
    return 0
  }

  get matchedRoutes(): readonly unknown[] {
    return []
  }

  addValidatedData(target: string, data: object): void {
    this.#context.full.req.addValidatedData(target as never, data)
  }

  valid(target: string): unknown {
    return this.#context.full.req.valid(target as never)
  }
}

/** All values of a header, joined as Headers joins them; undefined if there is none. */
function join(fields: Fields, name: string): string | undefined {
  let joined: string | undefined
  for (let at = 0; at < fields.length; at += 2) {
    if (fields[at] !== name) continue
    const value = fields[at + 1] ?? ''
    joined = joined === undefined ? value : `${joined}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return joined
}
