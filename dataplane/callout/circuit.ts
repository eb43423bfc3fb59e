const THRESHOLD = 3
const FIRST_REST_MS = 500
const LONGEST_REST_MS = 5000

/**
 * Spares calls to a destination that does not answer: after calls that failed in a row, of a total cost of 3, the next ones fail at
 * once. After 0.5 s one call is let through to try, and with each that fails the pause doubles, up to 5 s. Any success ends it.
 */
export class Circuit {
  #cost = 0
  #restMs = 0
  #openUntilMs = 0
  #isTrying = false

  /** Lets a call through, which then says once how it went; or tells in how many milliseconds it is worth another try. */
  enter(nowMs: number): Passage | number {
    if (this.#restMs === 0) return new Passage(this, false)
    if (this.#isTrying || nowMs < this.#openUntilMs) return Math.max(0, this.#openUntilMs - nowMs)
    this.#isTrying = true
    return new Passage(this, true)
  }

  /** For passages only. */
  leave(isTrial: boolean, outcome: 'answered' | 'given up' | number, nowMs: number): void {
    if (isTrial) this.#isTrying = false
    if (outcome === 'given up') return
    if (outcome === 'answered') {
      this.#cost = 0
      this.#restMs = 0
      return
    }
    this.#cost += outcome
    // Calls that were under way when it opened tell nothing new.
    if (this.#cost < THRESHOLD || (this.#restMs > 0 && !isTrial)) return
    this.#restMs = this.#restMs === 0 ? FIRST_REST_MS : Math.min(LONGEST_REST_MS, this.#restMs * 2)
    this.#openUntilMs = nowMs + this.#restMs
  }
}

/** One call that was let through. Only the first that is said of it counts. */
export class Passage {
  readonly #circuit: Circuit
  readonly #isTrial: boolean
  #isOver = false

  constructor(circuit: Circuit, isTrial: boolean) {
    this.#circuit = circuit
    this.#isTrial = isTrial
  }

  /** There is an answer, which may go on and yet stop: enough for calls that wait for this one's outcome, too little to forgive those before. */
  begin(): void {
    if (this.#isTrial) this.end('answered')
  }

  /** `given up`: for reasons that say nothing of the destination. A number: it was not answered, and how much that counts. False: too late. */
  end(outcome: 'answered' | 'given up' | number, nowMs = performance.now()): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#circuit.leave(this.#isTrial, outcome, nowMs)
    return true
  }
}

const circuits = new WeakMap<object, Circuit>()

/** The circuit of a destination; it lives as long as the destination. */
export function circuitOf(destination: object): Circuit {
  let circuit = circuits.get(destination)
  if (circuit === undefined) circuits.set(destination, (circuit = new Circuit()))
  return circuit
}
