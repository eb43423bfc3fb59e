import type { Step } from '../common/neutral.ts'
import type { ClientEvent } from '../common/types.ts'

/** Reads the event stream of one format. Unknown events yield no steps. */
export interface SseReader {
  /** The stream is complete only with its terminator; a finish reason is not enough. */
  readonly needsTerminator: boolean
  /** `data` is undefined if `text` is not JSON. */
  read(name: string | undefined, data: unknown, text: string): Step[]
}

/** Writes the event stream of one client format. */
export interface StepWriter {
  write(step: Step): ClientEvent[]
}
