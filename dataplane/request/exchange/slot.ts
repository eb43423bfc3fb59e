/** Where slots keep their values: an exchange, or a copy of one. */
export interface SlotHolder {
  /** Read and written by slots only; undefined until the first value is set. */
  slots: unknown[] | undefined
}

let count = 0
/** Indices of slots whose value a forked exchange does not get. */
const unforked: number[] = []

/**
 * A typed value that one module keeps on an exchange. The module that owns the type defines the slot, so that `Exchange` names no
 * type of the modules above it and readers need no cast.
 *
 * @example
 * export const gatewayTelemetry = defineSlot<GatewayTelemetry>('telemetry')
 * gatewayTelemetry.set(exchange, compiled)
 * gatewayTelemetry.get(exchange)?.accessLog
 */
export class Slot<T> {
  /** For diagnostics; need not be unique. */
  readonly name: string
  readonly #index: number

  constructor(name: string, index: number) {
    this.name = name
    this.#index = index
  }

  /** The value, or undefined if none was set. */
  get(holder: SlotHolder): T | undefined {
    // Only `set` of this slot writes at this index.
    return holder.slots?.[this.#index] as T | undefined
  }

  set(holder: SlotHolder, value: T | undefined): void {
    ;(holder.slots ??= [])[this.#index] = value
  }
}

/**
 * Defines a slot; called once per slot, when its module is loaded. With `isForked: false` a copy of the exchange
 * (`Exchange.fork`) starts without the value.
 */
export function defineSlot<T>(name: string, { isForked = true }: { readonly isForked?: boolean } = {}): Slot<T> {
  const index = count++
  if (!isForked) unforked.push(index)
  return new Slot(name, index)
}

/** The values that a forked exchange starts with. */
export function forkSlots(slots: readonly unknown[] | undefined): unknown[] | undefined {
  if (slots === undefined) return undefined
  const copy = slots.slice()
  for (const index of unforked) if (index < copy.length) copy[index] = undefined
  return copy
}
