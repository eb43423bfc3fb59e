import { readsMember, type Program } from '#api/cel/index.ts'
import { methodOfPath } from '../a2a-method/path.ts'
import { scanMethod, type Scanned } from '../a2a-method/scan.ts'
import { ProxyError } from '../exchange/error.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { defineSlot } from '../exchange/slot.ts'
import { variables, type A2aVariables } from '../exchange/variables.ts'
import { pathOf } from '../../http/message.ts'
import { bufferedRequest } from './buffer.ts'

/** Whether any of the programs reads `a2a`. */
export const readsA2a = (programs: readonly Program[]): boolean => programs.some((program) => readsMember(program, 'a2a'))

/** `a2a` of expressions: null unless the backend is an A2A agent. The method of JSON-RPC is known once the body is buffered. */
export function viewA2a(exchange: Exchange): A2aVariables | null {
  const known = variables.a2a.get(exchange)
  if (known !== undefined) return known
  if (exchange.picked?.destination.isA2a !== true) return null
  const { method } = find(exchange)
  return method === undefined ? {} : { method }
}

/**
 * Rejects a request to an A2A agent whose method cannot be known, so that it evades no rule. Call it when the body is buffered. Throws a ProxyError
 * A2A_METHOD or BODY_TOO_LARGE.
 */
export function checkA2a(exchange: Exchange): void {
  if (exchange.picked?.destination.isA2a !== true) return
  const { problem } = find(exchange)
  if (problem === TOO_LARGE) throw new ProxyError('BODY_TOO_LARGE')
  if (problem !== undefined) throw new ProxyError('A2A_METHOD', { detail: problem })
}

const TOO_LARGE = 'too large'

interface Found {
  readonly method?: string | undefined
  /** Why the method cannot be known. */
  readonly problem?: string | undefined
}

const scans = defineSlot<{ readonly bytes: Buffer; readonly scanned: Scanned }>('expression.a2a')

function find(exchange: Exchange): Found {
  const { request } = exchange
  const path = methodOfPath(request.method, pathOf(request.target))
  if (request.method !== 'POST' || path?.isGrpc === true || request.body === undefined) return { method: path?.method }
  const buffered = bufferedRequest(exchange)
  if (buffered === undefined) return {}
  if (!buffered.isComplete) return { problem: TOO_LARGE }
  const { method, isRpc, problem } = scan(exchange, buffered.prefix)
  if (problem !== undefined) return { problem }
  if (path !== undefined && (isRpc || method !== undefined)) return { problem: 'the path and the body name a method' }
  return { method: method ?? path?.method }
}

function scan(exchange: Exchange, bytes: Buffer): Scanned {
  const known = scans.get(exchange)
  if (known?.bytes === bytes) return known.scanned
  const scanned = scanMethod(bytes)
  scans.set(exchange, { bytes, scanned })
  return scanned
}
