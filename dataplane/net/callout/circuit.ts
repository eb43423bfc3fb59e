const FAILURE_THRESHOLD = 3
const INITIAL_OPEN_MS = 500
const MAX_OPEN_MS = 5000

/**
 * Outcome of a call.
 * - `answered`: the service responded, with whatever status.
 * - `cancelled`: the call ended for a reason that says nothing about the service, for example because the client disconnected.
 * - `failedWeight`: the service did not respond; the weight counts towards the failure threshold.
 */
export type Outcome = 'answered' | 'cancelled' | { readonly failedWeight: number }

/**
 * Circuit breaker of a destination. Failures in a row with a total weight of 3 open it: further calls fail at once. After 0.5 s one
 * trial call is permitted; each failed trial doubles the time, up to 5 s. Any success closes the circuit.
 */
export class Circuit {
  #failedWeight = 0
  /** Duration of the open state; 0 while the circuit is closed. */
  #openMs = 0
  #openUntilMs = 0
  #hasTrial = false

  /** Returns a permit for a call, or, while the circuit is open, the milliseconds until the next trial. */
  tryAcquire(nowMs: number): Permit | number {
    if (this.#openMs === 0) return new Permit(this, false)
    if (this.#hasTrial || nowMs < this.#openUntilMs) return Math.max(0, this.#openUntilMs - nowMs)
    this.#hasTrial = true
    return new Permit(this, true)
  }

  /** Internal: called by Permit only. */
  release(isTrial: boolean, outcome: Outcome, nowMs: number): void {
    if (isTrial) this.#hasTrial = false
    if (outcome === 'cancelled') return
    if (outcome === 'answered') {
      this.#failedWeight = 0
      this.#openMs = 0
      return
    }
    this.#failedWeight += outcome.failedWeight
    // Calls that were in flight when the circuit opened do not extend it.
    if (this.#failedWeight < FAILURE_THRESHOLD || (this.#openMs > 0 && !isTrial)) return
    this.#openMs = this.#openMs === 0 ? INITIAL_OPEN_MS : Math.min(MAX_OPEN_MS, this.#openMs * 2)
    this.#openUntilMs = nowMs + this.#openMs
  }
}

/** Permission for one call. Only the first reported outcome counts. */
export class Permit {
  readonly #circuit: Circuit
  readonly #isTrial: boolean
  #isOver = false

  constructor(circuit: Circuit, isTrial: boolean) {
    this.#circuit = circuit
    this.#isTrial = isTrial
  }

  /** The response began, though it may still stall: closes the circuit if this call is the trial, but does not reset earlier failures. */
  begin(): void {
    if (this.#isTrial) this.end('answered')
  }

  /** Reports the outcome. Returns false if one was already reported. */
  end(outcome: Outcome, nowMs = performance.now()): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#circuit.release(this.#isTrial, outcome, nowMs)
    return true
  }
}

const circuits = new WeakMap<object, Circuit>()

/** The circuit of a destination, created on first use. */
export function circuitOf(destination: object): Circuit {
  let circuit = circuits.get(destination)
  if (circuit === undefined) circuits.set(destination, (circuit = new Circuit()))
  return circuit
}
