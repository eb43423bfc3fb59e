import type { Exchange } from './exchange.ts'
import { runCooperatively, type Cooperative } from '../../runtime/cooperative.ts'

/** Runs work for a request in slices, so that others are served meanwhile. Rejects with the reason of the abort if the client disconnects. */
export function runWhileConnected<Result>(work: Cooperative<Result>, exchange: Exchange): Promise<Result> {
  return runCooperatively(work, () => {
    if (exchange.abortReason !== undefined) throw exchange.abortReason
  })
}
