import { CancelledError } from '../message/failure.ts'
import { idKey, type RpcId } from '../message/rpc.ts'
import type { LinkState } from './link.ts'

/** A call until its response is complete. `cancelCall` with its id aborts it. */
export class StartedCall {
  readonly #calls: Map<string, () => void>
  readonly #key: string
  readonly #abort = new AbortController()
  /** Called before the signal aborts. */
  onCancel: (() => void) | undefined

  constructor(state: LinkState, id: RpcId) {
    this.#calls = state.calls ??= new Map()
    this.#key = idKey(id)
    this.#calls.set(this.#key, this.#cancel)
  }

  /** Aborts with a CancelledError. */
  get cancellation(): AbortSignal {
    return this.#abort.signal
  }

  /** What a failure of the call is to its client. */
  causeOf(error: unknown): unknown {
    return this.#abort.signal.aborted ? this.#abort.signal.reason : error
  }

  end(): void {
    // A client can use the id again too early.
    if (this.#calls.get(this.#key) === this.#cancel) this.#calls.delete(this.#key)
  }

  readonly #cancel = (): void => {
    this.onCancel?.()
    this.#abort.abort(new CancelledError('the client cancelled the request'))
  }
}

/** Cancels the call that `notifications/cancelled` names. */
export const cancelCall = (state: LinkState, requestId: unknown): void => state.calls?.get(idKey(requestId))?.()
