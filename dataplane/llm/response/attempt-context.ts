import type { Exchange } from '../../exchange/exchange.ts'
import type { Prepared } from '../request/chat.ts'
import type { LlmRecord } from '../accounting/record.ts'
import type { LlmTarget } from '../choice/target.ts'

/** What the way back knows. */
export interface AttemptContext {
  readonly exchange: Exchange
  readonly target: LlmTarget
  readonly prepared: Prepared
  readonly record: LlmRecord
  readonly limitBytes: number
  /** The upstream's answer is over; false when the client did not wait for it. */
  onEnd(isWhole: boolean): void
  /** The answer said that it failed before it had any content. */
  onFailure(): void
}
