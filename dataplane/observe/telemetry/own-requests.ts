import type { Exchange } from '../../request/exchange/exchange.ts'

/** Records a finished request that the gateway sent for itself, such as a copy for a comparison, as the observers of requests do; by the registry of a thread. */
export const ownRequests = new WeakMap<object, (exchange: Exchange) => void>()
