import { isRawNumber } from '#api/json/index.ts'
import { capturedBodies, toolCaptureLimits } from '../../../request/exchange/captured-bodies.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { RpcMessage } from '../message/rpc.ts'

/** Captures arguments and result of a call of a tool for the ledger: what the guards let through, never what they reject (traffic.md §12.2). */
export class ToolCapture {
  readonly #exchange: Exchange
  readonly #limit: number

  private constructor(exchange: Exchange, limit: number) {
    this.#exchange = exchange
    this.#limit = limit
  }

  /** undefined if the ledger stores none of them. */
  static of(exchange: Exchange, registry: object): ToolCapture | undefined {
    const limit = toolCaptureLimits.get(registry)
    return limit === undefined ? undefined : new ToolCapture(exchange, limit)
  }

  /** Captures the arguments as the server receives them. */
  arguments(args: unknown): void {
    capturedBodies.set(this.#exchange, { request: printStart(args ?? {}, this.#limit) })
  }

  /** Captures the result of the call; of other requests nothing. */
  result({ result, error }: RpcMessage): void {
    const captured = capturedBodies.get(this.#exchange)
    if (captured !== undefined && error === undefined && result !== undefined) captured.response = printStart(result, this.#limit)
  }
}

/**
 * The first bytes of parsed JSON as `JSON.stringify` prints it. The time depends on the limit, not on the value.
 * @param limit bytes; a character that is cut is replaced
 */
export function printStart(value: unknown, limit: number): string {
  let text = ''
  const print = (each: unknown): void => {
    if (typeof each === 'string') text += JSON.stringify(each.length > limit ? each.slice(0, limit) : each)
    else if (typeof each !== 'object' || each === null || isRawNumber(each)) text += JSON.stringify(each) ?? 'null'
    else if (Array.isArray(each)) printAll('[', each.keys(), (key) => print(each[key]), ']')
    else
      printAll(
        '{',
        namesOf(each),
        (name) => {
          print(name)
          text += ':'
          print((each as Record<string, unknown>)[name])
        },
        '}',
      )
  }
  const printAll = <K>(open: string, keys: Iterable<K>, member: (key: K) => void, close: string): void => {
    text += open
    let separator = ''
    for (const key of keys) {
      if (text.length > limit) return
      text += separator
      separator = ','
      member(key)
    }
    text += close
  }
  print(value)
  if (text.length * 3 <= limit) return text.toWellFormed()
  return Buffer.from(text.slice(0, limit)).subarray(0, limit).toString().toWellFormed()
}

/** Without a list of all names. */
function* namesOf(object: object): Generator<string> {
  for (const name in object) if (Object.hasOwn(object, name)) yield name
}
