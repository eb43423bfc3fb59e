import type { HeaderMutation, ProcessingResponse } from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import type { Reply } from '../policy/ext-proc/messages.ts'
import type { Session, Streaming } from '../policy/ext-proc/session.ts'

/** What else a reply about the body may say. */
interface BodyReply {
  readonly headerMutation: HeaderMutation | undefined
  readonly dynamicMetadata: ProcessingResponse['dynamicMetadata']
}

/** Collects what the picker makes of a request's body, whichever way it says it: in pieces, as a whole, or by a plain yes. */
export class RequestReplies implements Streaming {
  /** The new body; undefined: it stays as it is. */
  readonly done: Promise<Buffer | undefined>
  readonly replies: BodyReply[] = []
  readonly #session: Session
  readonly #limitBytes: number
  readonly #chunks: Buffer[] = []
  #size = 0
  #resolve!: (body: Buffer | undefined) => void
  #reject!: (error: Error) => void

  constructor(session: Session, limitBytes: number) {
    this.#session = session
    this.#limitBytes = limitBytes
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // The head may fail first.
    this.done.catch(() => undefined)
  }

  receive(reply: Reply, { dynamicMetadata }: ProcessingResponse): boolean {
    if (reply.case !== 'requestBody') return false
    const common = reply.value.response
    this.replies.push({ headerMutation: common?.headerMutation, dynamicMetadata })
    const mutation = common?.bodyMutation?.mutation
    switch (mutation?.case) {
      case 'streamedResponse':
        this.#take(mutation.value.body)
        if (mutation.value.endOfStream) this.#finish(Buffer.concat(this.#chunks))
        break
      case 'body':
        this.#take(mutation.value)
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

  #take(bytes: Uint8Array): void {
    this.#size += bytes.length
    if (this.#size > this.#limitBytes) this.fail(new Error(`the picker makes more than ${this.#limitBytes} bytes of the body`))
    else this.#chunks.push(Buffer.from(bytes))
  }

  #finish(body: Buffer | undefined): void {
    this.stop()
    this.#resolve(body)
  }

  /** No more is wanted. */
  stop(): void {
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
