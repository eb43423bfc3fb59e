import { lookup as lookupName, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { networkInterfaces } from 'node:os'
import { refuseAddress, type DialRules } from '#api/address.ts'
import { RESERVED_PORTS, XDS_PORT } from '#api/names.ts'

/**
 * No response came: nothing listens, no route, no TLS, no address that may be dialled. Statuses tell none of these apart, because their readers choose the server and
 * must not learn which ports of the operator's network are open; the message is for logs.
 */
export class UnreachableError extends Error {
  static readonly from = (cause: Error): UnreachableError => new UnreachableError(cause.message, { cause })
}

/** Why a fetch failed, for statuses. Errors of Node have a code, errors of this directory have none. */
export function describeForStatus(error: unknown): string {
  const isOwn = error instanceof Error && !(error instanceof UnreachableError) && !('code' in error)
  return isOwn ? error.message : 'the server cannot be reached; the log of the operator has the cause'
}

const rulesOf = (isLoopbackAllowed: boolean): DialRules => ({
  isLoopbackAllowed,
  // In directory mode data planes run on this machine too.
  ports: () => [...RESERVED_PORTS, XDS_PORT],
  addresses: () => Object.values(networkInterfaces()).flatMap((entries = []) => entries.map(({ address }) => address)),
})

/** Why nothing may be fetched from an IP address that a user wrote, or undefined. Statuses show it: it depends on the address only. */
export function describeRefusal(address: string, port: number, isLoopbackAllowed: boolean): string | undefined {
  const reason = refuseAddress(address, port, rulesOf(isLoopbackAllowed))
  return reason && `${address} is ${reason}; nothing is fetched from there`
}

/** Resolves names as the system does, and fails when any of the addresses is refused: checked where it is dialled, so that DNS cannot change in between. */
export function createLookup(port: number, isLoopbackAllowed: boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookupName(hostname, { ...options, all: true }, (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => {
      if (error) return callback(error, [])
      const problem = addresses.map(({ address }) => describeRefusal(address, port, isLoopbackAllowed)).find((each) => each !== undefined)
      if (problem !== undefined) return callback(new UnreachableError(`${hostname}: ${problem}`), [])
      const [first] = addresses
      if (options.all === true || !first) return callback(null, addresses)
      return callback(null, first.address, first.family)
    })
  }
}
