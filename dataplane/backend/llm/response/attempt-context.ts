import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { Prepared } from '../request/chat.ts'
import type { LlmRecord } from '../accounting/record.ts'
import type { StreamError } from '../common/types.ts'
import type { LlmTarget } from '../choice/target.ts'

/** The attempt that a response belongs to. */
export interface AttemptContext {
  readonly exchange: Exchange
  readonly target: LlmTarget
  readonly prepared: Prepared
  readonly record: LlmRecord
  readonly limitBytes: number
  /** The texts of the response are compared. */
  readonly isCompared: boolean
  /** The upstream's response ended; false if the client disconnected before. */
  onEnd(isComplete: boolean): void
  /** The stream reported an error before its first content. */
  onFailure(error: StreamError): void
}
