import type { AddressInfo, ListenOptions, Server } from 'node:net'
import { ADMIN_PORT, LIVENESS_PORT, READINESS_PORT, STATS_PORT } from '#api/names.ts'
import type { ProcessConfig } from '#gen/config/types.ts'
import { authorityOf } from '../../http/message.ts'

export interface HostPort {
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
}

/** Where the management endpoints listen. */
export interface ManagementAddresses {
  readonly admin: HostPort
  readonly stats: HostPort
  readonly readiness: HostPort
}
export type Endpoint = keyof ManagementAddresses

const sources: Readonly<Record<Endpoint, { env: string; field: 'adminAddr' | 'statsAddr' | 'readinessAddr'; fallback: string }>> = {
  admin: { env: 'ADMIN_ADDR', field: 'adminAddr', fallback: `127.0.0.1:${ADMIN_PORT}` },
  stats: { env: 'STATS_ADDR', field: 'statsAddr', fallback: `[::]:${STATS_PORT}` },
  readiness: { env: 'READINESS_ADDR', field: 'readinessAddr', fallback: `[::]:${READINESS_PORT}` },
}

/** An unusable address. The message is one line and names the setting. */
export class AddressError extends Error {}

/**
 * Resolves the addresses from the environment, the config file and the defaults, in this order (traffic.md §12).
 * @throws AddressError
 */
export function resolveAddresses(env: Readonly<Record<string, string | undefined>>, config: ProcessConfig = {}): ManagementAddresses {
  const resolve = (endpoint: Endpoint): HostPort => {
    const { env: name, field, fallback } = sources[endpoint]
    const fromEnv = env[name]
    if (fromEnv !== undefined && fromEnv !== '') return parseAddress(fromEnv, name)
    return parseAddress(config[field] ?? fallback, `config.${field}`)
  }
  return { admin: resolve('admin'), stats: resolve('stats'), readiness: resolve('readiness') }
}

/** Where the liveness endpoint listens: LIVENESS_ADDR, else port 15022 in a pod, else nowhere. */
export function resolveLivenessAddress(env: Readonly<Record<string, string | undefined>>, isInPod: boolean): HostPort | undefined {
  const text = env['LIVENESS_ADDR'] ?? ''
  if (text !== '') return parseAddress(text, 'LIVENESS_ADDR')
  return isInPod ? { host: '::', port: LIVENESS_PORT } : undefined
}

/** Parses `host:port`, `[ipv6]:port`, `:port` and `[::]:port` (all addresses) and `localhost:port`. */
function parseAddress(text: string, setting: string): HostPort {
  const match = /^(?:\[([0-9a-fA-F:.%a-z]+)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(text.trim())
  const port = Number(match?.[3])
  if (match === null || port > 65535) throw new AddressError(`${setting}: ${JSON.stringify(text)} is not host:port, such as 127.0.0.1:${ADMIN_PORT}`)
  const host = match[1] ?? match[2] ?? ''
  return { host: host === '' ? '::' : host, port }
}

/** Options of `listen`. Without a host, Node listens on all addresses of both families, and on those of IPv4 if the kernel has no IPv6. */
export const listenOptions = ({ host, port }: HostPort): ListenOptions => ({ port, ...(host !== '::' && { host }) })

/** Listens and returns the address with the port in use; ::1 where 127.0.0.1 does not exist. Rejects with an AddressError that names the setting to change. */
export function listen(server: Server, address: HostPort, endpoint: Endpoint): Promise<HostPort> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      if (error.code === 'EADDRNOTAVAIL' && address.host === '127.0.0.1') return resolve(listen(server, { host: '::1', port: address.port }, endpoint))
      const why = listenErrors[error.code ?? ''] ?? error.message
      reject(
        new AddressError(
          `cannot listen on ${authorityOf(address.host, address.port)} (${endpoint} endpoint): ${why}; set ${sources[endpoint].env} to another host:port`,
        ),
      )
    }
    server.once('error', onError)
    server.listen(listenOptions(address), () => {
      server.off('error', onError)
      resolve({ host: address.host, port: (server.address() as AddressInfo).port })
    })
  })
}

const listenErrors: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'the host name does not resolve',
}
