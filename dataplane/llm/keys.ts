import type { Exchange } from '../exchange.ts'
import type { ResponseFacts } from './formats/types.ts'
import type { LlmTarget } from './target.ts'

/** What the client's credential allows. */
export interface KeyPolicy {
  isAllowed(model: string): boolean
  /** Throws a ProxyError for a model that the key may not use. */
  check(model: string): void
  priceOf(target: LlmTarget, model: string | undefined): ((facts: ResponseFacts) => number | undefined) | undefined
}

export function createKeyPolicy(_exchange: Exchange): KeyPolicy {
  return { isAllowed: () => true, check: () => undefined, priceOf: () => undefined }
}
