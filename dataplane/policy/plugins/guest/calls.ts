import type { MiddlewareHandler } from 'hono'
import type { PluginHooks } from '#api/plugin/index.ts'
import { HeaderList } from '../../../http/headers.ts'
import { runHook } from '../hooks/run.ts'
import { changeFields, compare, toFieldMap, type SeenRequest, type SeenResponse } from './fetch-objects.ts'
import type { FromPlugin, RequestChange, ResponseChange, StreamMessage, ToPlugin } from './messages.ts'
import { PluginCall, type Callee, type Target } from './plugin-call.ts'
import { PluginStreams } from './plugin-streams.ts'

type RequestMessage = Extract<ToPlugin, { type: 'request' }>
type HookMessage = Extract<ToPlugin, { type: 'hook' }>
type ResponseMessage = Extract<ToPlugin, { type: 'response' }>

const unchanged: RequestChange & ResponseChange = { set: [], removed: [] }

/** The exchange of a call, which is in another thread or process. */
class RemoteTarget implements Target {
  /** Its middleware has ended. */
  isOver = false
  readonly streams: PluginStreams
  readonly #message: RequestMessage
  readonly #send: (message: FromPlugin) => void
  #requestChange: RequestChange = unchanged
  #waiting: { resolve(): void; reject(error: Error): void } | undefined = undefined
  #response: ResponseMessage | undefined = undefined
  /** Header fields of the response, once they were read. */
  #fields: HeaderList | undefined = undefined
  #responseChange: Omit<ResponseChange, 'set' | 'removed'> = {}

  constructor(message: RequestMessage, streams: PluginStreams, send: (message: FromPlugin) => void) {
    this.#message = message
    this.streams = streams
    this.#send = send
  }

  seeRequest(): SeenRequest {
    return this.#message
  }

  seeResponse(): SeenResponse {
    const { status = 500, headers = [], body } = this.#response ?? {}
    return { status, headers: this.#fields?.raw ?? headers, body }
  }

  get fields(): HeaderList | undefined {
    return (this.#fields ??= this.#response && new HeaderList(this.#response.headers.slice()))
  }

  isChangeable(): boolean {
    // The gateway ignores changes of fields that are its own.
    return true
  }

  changeRequest(change: RequestChange): void {
    this.#requestChange = change
  }

  next(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#send({ type: 'next', id: this.#message.id, change: this.#requestChange })
    })
  }

  respond(message: ResponseMessage): void {
    this.#response = message
    this.#waiting?.resolve()
  }

  cancel(error: Error): void {
    this.#waiting?.reject(error)
    this.streams.cancel(error)
  }

  changeResponse({ set, removed, ...rest }: ResponseChange): void {
    if (this.fields !== undefined) changeFields(this.fields, { set, removed }, () => this.isChangeable())
    this.#responseChange = rest
  }

  /** What the plugin changed of the response. */
  get responseChange(): ResponseChange {
    const fields = this.#fields
    if (fields === undefined) return unchanged
    return { ...compare(toFieldMap(this.#response?.headers ?? []), toFieldMap(fields.raw)), ...this.#responseChange }
  }
}

/** Runs the hooks of a plugin: its Hono middleware with the rest of the chain in another thread as its `next()`. */
export class PluginCalls implements Callee {
  readonly middleware: MiddlewareHandler
  readonly #calls = new Map<number, RemoteTarget>()
  readonly #hooks: PluginHooks
  readonly #send: (message: FromPlugin) => void
  readonly #describe: (error: unknown) => string

  /** `describe` makes messages for logs of errors of the plugin. */
  constructor(hooks: PluginHooks, send: (message: FromPlugin) => void, describe: (error: unknown) => string) {
    this.middleware = hooks.request ?? ((_, next) => next())
    this.#hooks = hooks
    this.#send = send
    this.#describe = describe
  }

  toError(thrown: unknown): unknown {
    return thrown
  }

  /** Runs a call. Rejects with the error of the plugin. */
  async run(message: RequestMessage | HookMessage): Promise<void> {
    if (message.type === 'request') return this.#start(message)
    const { id } = message
    const result = await runHook(this.#hooks, message)
    this.#send('output' in result ? { type: 'hooked', id, ...result } : { type: 'answer', id, ...result })
  }

  async #start(message: RequestMessage): Promise<void> {
    const { id } = message
    const streams = new PluginStreams(id, (about) => this.#sendAbout(about), this.#describe)
    const target = new RemoteTarget(message, streams, this.#send)
    this.#calls.set(id, target)
    try {
      const answer = await new PluginCall(this, target).run()
      this.#send(answer === undefined ? { type: 'done', id, change: target.responseChange } : { type: 'answer', id, ...answer })
    } finally {
      target.isOver = true
      if (!streams.isOpen) this.#calls.delete(id)
    }
  }

  #sendAbout(message: StreamMessage): void {
    this.#send(message)
    if (message.type === 'end') this.#endIfOver(message.id)
  }

  #endIfOver(id: number): void {
    const target = this.#calls.get(id)
    if (target?.isOver === true && !target.streams.isOpen) this.#calls.delete(id)
  }

  /** A message about a body of a call. */
  receive(message: StreamMessage): void {
    this.#calls.get(message.id)?.streams.receive(message)
    if (message.type === 'stop') this.#endIfOver(message.id)
  }

  respond(message: ResponseMessage): void {
    this.#calls.get(message.id)?.respond(message)
  }

  cancel(id: number): void {
    const target = this.#calls.get(id)
    target?.cancel(new Error('the client disconnected'))
    if (target?.isOver === true) this.#calls.delete(id)
  }
}

const streamTypes: ReadonlySet<string> = new Set(['pull', 'stop', 'data', 'end'] satisfies StreamMessage['type'][])

export const isStreamMessage = (message: ToPlugin | FromPlugin): message is StreamMessage => streamTypes.has(message.type)
