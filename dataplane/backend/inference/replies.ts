import type { HeaderMutation, ProcessingResponse } from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import { createBodyHold } from '../../request/exchange/held.ts'
import type { Reply } from '../../policy/ext-proc/messages.ts'
import type { ProcessorSession, Streaming } from '../../policy/ext-proc/session.ts'

/** The parts of a reply to the body other than the body itself. */
interface BodyReply {
  readonly headerMutation: HeaderMutation | undefined
  readonly dynamicMetadata: ProcessingResponse['dynamicMetadata']
}

/** Collects the picker's replies to the request body: a new body in one or several pieces, or no change. */
export class RequestReplies implements Streaming {
  /** Resolves to the new body; undefined if it does not change. */
  readonly done: Promise<Buffer | undefined>
  readonly replies: BodyReply[] = []
  readonly #session: ProcessorSession
  readonly #limitBytes: number
  readonly #chunks: Buffer[] = []
  readonly #hold = createBodyHold()
  #size = 0
  #resolve!: (body: Buffer | undefined) => void
  #reject!: (error: Error) => void

  constructor(session: ProcessorSession, limitBytes: number) {
    this.#session = session
    this.#limitBytes = limitBytes
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // Nobody awaits this if the reply to the head fails first.
    this.done.catch(() => undefined)
  }

  receive(reply: Reply, { dynamicMetadata }: ProcessingResponse): boolean {
    if (reply.case !== 'requestBody') return false
    const common = reply.value.response
    this.replies.push({ headerMutation: common?.headerMutation, dynamicMetadata })
    const mutation = common?.bodyMutation?.mutation
    switch (mutation?.case) {
      case 'streamedResponse':
        this.#append(mutation.value.body)
        if (mutation.value.endOfStream) this.#finish(Buffer.concat(this.#chunks))
        break
      case 'body':
        this.#append(mutation.value)
        this.#finish(Buffer.concat(this.#chunks))
        break
      case 'clearBody':
        this.#finish(mutation.value ? Buffer.alloc(0) : undefined)
        break
      default:
        this.#finish(undefined)
    }
    return true
  }

  #append(bytes: Uint8Array): void {
    this.#size += bytes.length
    const excess = this.#hold.reserve(bytes.length)
    if (excess !== undefined) this.fail(excess)
    else if (this.#size > this.#limitBytes) this.fail(new Error(`the picker returned a body of more than ${this.#limitBytes} bytes`))
    else this.#chunks.push(Buffer.from(bytes))
  }

  #finish(body: Buffer | undefined): void {
    this.stop()
    this.#resolve(body)
  }

  /** Ignores further replies. */
  stop(): void {
    this.#hold.release()
    this.#session.ignore('request')
    this.#session.remove(this)
  }

  fail(error: Error): void {
    this.stop()
    this.#reject(error)
  }

  drained(): void {}
  opened(): void {}
}
