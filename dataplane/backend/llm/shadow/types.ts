import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { Outcome } from '../accounting/record.ts'
import type { Stop } from '../common/types.ts'
import type { ModelShadow } from '../models/table.ts'
import type { Prepared } from '../request/chat.ts'

/** A response that is compared: that of a client, or that of a copy. */
export interface ComparedReply extends Outcome {
  /** Names the target that responded. */
  readonly target: string
  readonly stop: Stop | undefined
  /** The request as it was sent; undefined if no attempt had a response. */
  readonly prepared: Prepared | undefined
}

/** Takes copies of requests. Neither function waits. */
export interface Sampler {
  /** Whether a request is copied: by its share, and by chance. */
  draws(shadow: ModelShadow): boolean
  /** Copies a request whose response has ended. */
  offer(shadow: ModelShadow, exchange: Exchange, reply: ComparedReply): void
}
