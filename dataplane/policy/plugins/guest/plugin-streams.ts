import type { StreamMessage, StreamName } from './messages.ts'

/** Longest chunk that a plugin sends. */
const MAX_CHUNK_BYTES = 256 * 1024

interface Input {
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  resolve: (() => void) | undefined
}

interface Output {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>
  rest: Uint8Array
}

/** In the thread of the plugin: the bodies of one call that pass in chunks, as streams. */
export class PluginStreams {
  readonly #id: number
  readonly #send: (message: StreamMessage) => void
  readonly #describe: (error: unknown) => string
  readonly #inputs = new Map<StreamName, Input>()
  readonly #outputs = new Map<StreamName, Output>()

  constructor(id: number, send: (message: StreamMessage) => void, describe: (error: unknown) => string) {
    this.#id = id
    this.#send = send
    this.#describe = describe
  }

  /** Whether the gateway reads from a body. */
  get isOpen(): boolean {
    return this.#outputs.size > 0
  }

  /** A body of the gateway. Each read asks for a chunk. */
  input(stream: StreamName): ReadableStream<Uint8Array> {
    const id = this.#id
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => void this.#inputs.set(stream, { controller, resolve: undefined }),
        pull: () =>
          new Promise((resolve) => {
            const input = this.#inputs.get(stream)
            if (input === undefined) return resolve()
            input.resolve = resolve
            this.#send({ type: 'pull', id, stream })
          }),
        cancel: () => {
          this.#inputs.delete(stream)
          this.#send({ type: 'stop', id, stream })
        },
      },
      { highWaterMark: 0 },
    )
  }

  /** A body for the gateway. */
  output(stream: StreamName, body: ReadableStream<Uint8Array>): void {
    this.#outputs.set(stream, { reader: body.getReader(), rest: new Uint8Array() })
  }

  receive(message: StreamMessage): void {
    const { stream } = message
    const input = this.#inputs.get(stream)
    switch (message.type) {
      case 'pull':
        return void this.#pull(stream)
      case 'stop':
        return this.#stop(stream)
      case 'data':
        input?.controller.enqueue(message.chunk)
        break
      case 'end':
        this.#inputs.delete(stream)
        if (message.error === undefined) input?.controller.close()
        else input?.controller.error(new Error(message.error))
    }
    input?.resolve?.()
  }

  #stop(stream: StreamName): void {
    const output = this.#outputs.get(stream)
    this.#outputs.delete(stream)
    output?.reader.cancel().catch(() => undefined)
  }

  /** Ends the bodies of the gateway with an error. */
  cancel(error: Error): void {
    for (const { controller, resolve } of this.#inputs.values()) {
      controller.error(error)
      resolve?.()
    }
    this.#inputs.clear()
    for (const { reader } of this.#outputs.values()) reader.cancel(error).catch(() => undefined)
    this.#outputs.clear()
  }

  async #pull(stream: StreamName): Promise<void> {
    const output = this.#outputs.get(stream)
    if (output === undefined) return
    const id = this.#id
    try {
      while (output.rest.length === 0) {
        const { done, value } = await output.reader.read()
        if (done) {
          this.#outputs.delete(stream)
          return this.#send({ type: 'end', id, stream })
        }
        if (!((value as unknown) instanceof Uint8Array)) throw new TypeError(`the ${stream} body of the plugin has chunks that are no Uint8Array`)
        output.rest = value
      }
      const chunk = output.rest.subarray(0, MAX_CHUNK_BYTES)
      output.rest = output.rest.subarray(chunk.length)
      // A copy: the chunk may be a view of a larger buffer.
      this.#send({ type: 'data', id, stream, chunk: chunk.slice() })
    } catch (error) {
      this.#outputs.delete(stream)
      this.#send({ type: 'end', id, stream, error: this.#describe(error) })
    }
  }
}
