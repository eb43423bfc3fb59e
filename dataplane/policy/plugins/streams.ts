import { ProxyError } from '../../request/exchange/error.ts'
import type { Body, BodySink } from '../../http/body.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { StreamMessage, StreamName } from './guest/messages.ts'
import { PluginError } from './plugin-error.ts'

export interface StreamOptions {
  readonly id: number
  /** Longest time in which a plugin that has everything it asked for makes the next chunk. */
  readonly timeoutMs: number
  readonly post: (message: StreamMessage) => void
  /** Called once, if the plugin fails after its step: the message that it changes breaks off. */
  readonly onFailure: (error: PluginError) => void
  /** Called when the plugin exceeded the timeout, after `onFailure`. */
  readonly onTimeout: () => void
  /** Called when the last body that the plugin makes has ended. */
  readonly onClosed: () => void
}

/**
 * The bodies of one call that pass a plugin in chunks. The reader of each body asks for each chunk: the plugin for those of client and upstream, the gateway for
 * those that the plugin makes. So one chunk of a body is under way at a time, besides what a source had read before it was paused.
 */
export class CallStreams {
  readonly #options: StreamOptions
  readonly #inputs = new Map<StreamName, Input>()
  readonly #outputs = new Map<StreamName, PluginBody>()
  #clock: NodeJS.Timeout | undefined
  #hasFailed = false

  constructor(options: StreamOptions) {
    this.#options = options
  }

  /** Whether a body that the plugin makes has not ended. */
  get isOpen(): boolean {
    return [...this.#outputs.values()].some((output) => !output.isOver)
  }

  /** Offers a body to the plugin. It is started when the plugin reads it. */
  offer(stream: StreamName, body: Body): void {
    const { id, post } = this.#options
    this.#inputs.set(stream, new Input(body, (message) => post({ ...message, id, stream })))
  }

  /** Whether the plugin has read from a body. */
  hasRead(stream: StreamName): boolean {
    return this.#inputs.get(stream)?.isStarted === true
  }

  /** Announces a body that the plugin makes. */
  open(stream: StreamName): void {
    const { id, post } = this.#options
    const output = new PluginBody({
      pull: () => {
        post({ type: 'pull', id, stream })
        this.#restartClock()
      },
      stop: () => {
        post({ type: 'stop', id, stream })
        this.#onOutputEnd()
      },
    })
    this.#outputs.set(stream, output)
  }

  /** A body that was announced. */
  body(stream: StreamName): Body | undefined {
    return this.#outputs.get(stream)
  }

  receive(message: StreamMessage): void {
    const { stream } = message
    switch (message.type) {
      case 'pull':
        this.#inputs.get(stream)?.pull()
        break
      case 'stop':
        this.#inputs.get(stream)?.cancel()
        break
      case 'data':
        this.#outputs.get(stream)?.push(toBuffer(message.chunk))
        break
      case 'end':
        if (message.error !== undefined) return this.fail(this.#cause() ?? new PluginError('failed', message.error))
        this.#outputs.get(stream)?.end(this.#inputs.get(stream)?.trailers)
        this.#onOutputEnd()
    }
    this.#restartClock()
  }

  /** Ends all bodies that the plugin makes with an error. */
  fail(error: Error): void {
    clearTimeout(this.#clock)
    if (this.#hasFailed) return
    this.#hasFailed = true
    const open = [...this.#outputs.values()].filter((output) => !output.isOver)
    for (const input of this.#inputs.values()) if (input.isStarted) input.cancel()
    if (open.length === 0) return
    const shown = error instanceof PluginError ? new ProxyError(error.kind === 'timeout' ? 'PLUGIN_TIMEOUT' : 'PLUGIN', { cause: error }) : error
    for (const output of open) output.fail(shown)
    if (error instanceof PluginError) this.#options.onFailure(error)
    this.#options.onClosed()
  }

  /** Ends the bodies that the plugin reads and nothing reads any more. */
  close(): void {
    clearTimeout(this.#clock)
    for (const [stream, input] of this.#inputs) if (input.isStarted || this.#outputs.has(stream)) input.cancel()
  }

  /** The error of a body that broke off, of which the errors of the plugin are consequences. */
  #cause(): Error | undefined {
    return [...this.#inputs.values()].find(({ error }) => error !== undefined)?.error
  }

  #onOutputEnd(): void {
    if (!this.isOpen) this.#options.onClosed()
  }

  /** The time of the plugin runs while the gateway waits for a chunk of it and it waits for none of the gateway. */
  #restartClock(): void {
    clearTimeout(this.#clock)
    const isAwaited = [...this.#outputs.values()].some((output) => output.isAwaited)
    if (!isAwaited || [...this.#inputs.values()].some((input) => input.isAwaited)) return
    const { timeoutMs, onTimeout } = this.#options
    this.#clock = setTimeout(() => {
      this.fail(new PluginError('timeout', `no part of a body in ${timeoutMs} ms`))
      onTimeout()
    }, timeoutMs)
  }
}

const toBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)

type SentMessage = { readonly type: 'data'; readonly chunk: Uint8Array } | { readonly type: 'end'; readonly error?: string }

/** A body of client or upstream that a plugin reads. */
class Input implements BodySink {
  readonly #body: Body
  readonly #send: (message: SentMessage) => void
  /** Chunks that the source had read before it was paused. */
  readonly #queue: Buffer[] = []
  #isEnded = false
  isStarted = false
  /** The plugin waits for a chunk. */
  isAwaited = false
  trailers: HeaderList | undefined
  error: Error | undefined

  constructor(body: Body, send: (message: SentMessage) => void) {
    this.#body = body
    this.#send = send
  }

  pull(): void {
    this.isAwaited = true
    if (!this.isStarted) {
      this.isStarted = true
      return this.#body.start(this)
    }
    this.#flow()
    if (this.isAwaited && !this.#isEnded) this.#body.resume()
  }

  onData(chunk: Buffer): void {
    this.#queue.push(chunk)
    this.#flow()
    if (!this.isAwaited && !this.#isEnded) this.#body.pause()
  }

  onEnd(trailers: HeaderList | undefined): void {
    this.trailers = trailers
    this.#isEnded = true
    this.#flow()
  }

  onError(error: Error): void {
    this.error = error
    this.#isEnded = true
    this.#flow()
  }

  cancel(): void {
    this.isAwaited = false
    this.#queue.length = 0
    if (this.#isEnded) return
    this.#isEnded = true
    this.#body.cancel()
  }

  #flow(): void {
    if (!this.isAwaited) return
    const chunk = this.#queue.shift()
    if (chunk === undefined && !this.#isEnded) return
    this.isAwaited = false
    if (chunk !== undefined) this.#send({ type: 'data', chunk })
    else this.#send({ type: 'end', ...(this.error !== undefined && { error: 'the body broke off' }) })
  }
}

interface OutputSource {
  pull(): void
  stop(): void
}

/** A body that a plugin makes. */
class PluginBody implements Body {
  readonly length = undefined
  readonly #source: OutputSource
  #sink: BodySink | undefined
  #kept: Buffer | undefined
  #end: { readonly trailers: HeaderList | undefined; readonly error?: Error } | undefined
  #isPaused = false
  isOver = false
  /** The gateway waits for a chunk. */
  isAwaited = false

  constructor(source: OutputSource) {
    this.#source = source
  }

  start(sink: BodySink): void {
    this.#sink = sink
    this.#flow()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#flow()
  }

  cancel(): void {
    if (this.isOver) return
    this.isOver = true
    this.isAwaited = false
    this.#source.stop()
  }

  push(chunk: Buffer): void {
    // A chunk that was not asked for would evade back-pressure.
    if (!this.isAwaited || this.isOver) return
    this.isAwaited = false
    this.#kept = chunk
    this.#flow()
  }

  end(trailers: HeaderList | undefined): void {
    this.isAwaited = false
    this.#end ??= { trailers }
    this.#flow()
  }

  fail(error: Error): void {
    this.isAwaited = false
    this.#end ??= { trailers: undefined, error }
    this.#kept = undefined
    this.#flow()
  }

  #flow(): void {
    if (this.#sink === undefined || this.isOver) return
    if (this.#kept !== undefined && !this.#isPaused) {
      const chunk = this.#kept
      this.#kept = undefined
      if (chunk.length > 0) this.#sink.onData(chunk)
    }
    if (this.isOver || this.#kept !== undefined) return
    if (this.#end !== undefined) {
      if (this.#isPaused && this.#end.error === undefined) return
      this.isOver = true
      if (this.#end.error === undefined) this.#sink.onEnd(this.#end.trailers)
      else this.#sink.onError(this.#end.error)
    } else if (!this.#isPaused && !this.isAwaited) {
      this.isAwaited = true
      this.#source.pull()
    }
  }
}
