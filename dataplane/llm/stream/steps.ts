import type { Step } from '../common/neutral.ts'
import type { ClientEvent } from '../common/types.ts'

/** Reads a server-sent stream of one format. Lenient: what it does not know gives no steps. */
export interface SseReader {
  /** A finish reason alone is no end: clients of the format wait for the terminator. */
  readonly needsTerminator: boolean
  /** `data` is undefined for text that is not JSON. */
  read(name: string | undefined, data: unknown, text: string): Step[]
}

/** Writes a stream of a client format. */
export interface StepWriter {
  write(step: Step): ClientEvent[]
}
