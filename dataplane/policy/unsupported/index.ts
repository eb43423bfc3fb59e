import type { Policy } from '../../context.ts'
import { ProxyError } from '../../error.ts'

/** Stands for a security policy that this build cannot enforce: nobody passes, and the answer says why. */
export function unsupportedPolicy(name: string): Policy {
  return async () => {
    throw new ProxyError('FILTER_FAILED', { detail: `policy ${name} is not supported by this version` })
  }
}
