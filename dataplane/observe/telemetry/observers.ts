import type { Exchange } from '../../request/exchange/exchange.ts'
import type { Telemetry } from './telemetry.ts'

type Observer = (exchange: Exchange) => void
type Observed = Pick<Telemetry, 'observe'>

const observers = new WeakMap<Observed, Set<Observer>>()

/** Calls a function with each finished exchange until `unobserve`. Without observers a request costs one comparison. */
export function observe(telemetry: Observed, observer: Observer): void {
  let known = observers.get(telemetry)
  if (known === undefined) observers.set(telemetry, (known = new Set()))
  known.add(observer)
  const all = known
  telemetry.observe = (exchange) => {
    for (const each of all) each(exchange)
  }
}

/** Ends `observe`. */
export function unobserve(telemetry: Observed, observer: Observer): void {
  const known = observers.get(telemetry)
  if (known?.delete(observer) === true && known.size === 0) telemetry.observe = undefined
}
