import { condition, fault } from '../../model/conditions.ts'
import type { Condition } from '../../model/translation.ts'

/**
 * PartiallyInvalid for `options` of a listener or BackendTLSPolicy, of which none is supported; empty if there are none.
 * @param field path of the options
 * @param fix what to do instead
 */
export function describeTlsOptions(field: string, options: Readonly<Record<string, string>> = {}, fix: string, generation: number): Condition[] {
  const keys = Object.keys(options)
  if (keys.length === 0) return []
  const named = keys.map((key) => `${field}["${key}"]`).join(', ')
  const { reason, message } = fault('UnsupportedValue', `TLS options are not supported and have no effect: ${named}; ${fix}`, 'PX1029')
  return [condition('PartiallyInvalid', true, reason, message, generation)]
}
