import type { ReadableStreamDefaultReader } from 'node:stream/web'
import { BufferBody, type Body, type BodySink } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'

type Data = string | ArrayBuffer | Uint8Array | Blob | ReadableStream | null
type HeaderRecord = Readonly<Record<string, string | string[]>>
export type AnswerInit = number | { readonly status?: number | undefined; readonly headers?: unknown }

/** A Response whose bytes are available without reading its stream. */
export class LocalResponse extends Response {
  /** Undefined when the body is a stream or absent. */
  readonly content: Buffer | undefined

  constructor(data: Data, init: AnswerInit | undefined, headers: HeaderRecord | undefined, contentType?: string) {
    const options = typeof init === 'number' || init === undefined ? { status: init } : init
    const all = new Headers(options.headers as Headers | undefined)
    if (contentType !== undefined && !all.has('content-type')) all.set('content-type', contentType)
    for (const [name, value] of Object.entries(headers ?? {})) {
      all.delete(name)
      for (const one of Array.isArray(value) ? value : [value]) all.append(name, one)
    }
    super(data as ConstructorParameters<typeof Response>[0], { status: options.status ?? 200, headers: all })
    this.content = toBuffer(data)
  }
}

function toBuffer(data: Data): Buffer | undefined {
  if (typeof data === 'string') return Buffer.from(data)
  if (data instanceof ArrayBuffer) return Buffer.from(data)
  return data instanceof Uint8Array ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : undefined
}

/** Converts the Response of a policy to a response head. Streams stay streams; all other bodies get a content-length. */
export function toResponseHead(response: Response): ResponseHead {
  const headers = new HeaderList()
  for (const [name, value] of response.headers) headers.append(name, value)
  const body = toBody(response)
  if (body?.length === 0 || body === undefined) {
    if (!isNullBodyStatus(response.status)) headers.set('content-length', '0')
    return { status: response.status, headers, body: undefined, upgraded: undefined }
  }
  if (body.length !== undefined) headers.set('content-length', String(body.length))
  return { status: response.status, headers, body, upgraded: undefined }
}

/** Statuses whose responses have neither body nor content-length (RFC 9110 §8.6, §15). */
export function isNullBodyStatus(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}

function toBody(response: Response): Body | undefined {
  if (response instanceof LocalResponse && response.content !== undefined) return new BufferBody(response.content)
  return response.body === null ? undefined : new StreamBody(response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>)
}

/** A web stream as a body: reads the next chunk unless the sink has paused. */
class StreamBody implements Body {
  readonly length = undefined
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #sink: BodySink | undefined
  #isPaused = false
  #isReading = false
  #isDone = false

  constructor(reader: ReadableStreamDefaultReader<Uint8Array>) {
    this.#reader = reader
  }

  start(sink: BodySink): void {
    this.#sink = sink
    void this.#flow()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    void this.#flow()
  }

  cancel(error?: Error): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#reader.cancel(error).catch(() => {})
  }

  async #flow(): Promise<void> {
    if (this.#isReading || this.#sink === undefined) return
    this.#isReading = true
    try {
      while (!this.#isPaused && !this.#isDone) {
        const { value, done } = await this.#reader.read()
        if (this.#isDone) return
        if (!done) {
          this.#sink.onData(Buffer.from(value.buffer, value.byteOffset, value.byteLength))
          continue
        }
        this.#isDone = true
        this.#sink.onEnd(undefined)
      }
    } catch (thrown) {
      if (this.#isDone) return
      this.#isDone = true
      this.#sink.onError(thrown instanceof Error ? thrown : new Error(String(thrown)))
    } finally {
      this.#isReading = false
    }
  }
}
