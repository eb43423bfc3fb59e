import type { PluginKv, PluginKvOptions } from '#api/plugin/index.ts'
import type { FetchCall, FetchResult } from './fetch-messages.ts'
import type { KeyValueCall, KeyValueResult } from '../../../runtime/key-value.ts'

/** What the gateway does for a plugin. Rejections are errors for the plugin. */
export interface PluginServices {
  keyValue(call: KeyValueCall): Promise<KeyValueResult>
  fetch(call: FetchCall): Promise<FetchResult>
}

/** A call of a service from a worker thread. */
export type ServiceCall = { readonly service: 'keyValue'; readonly call: KeyValueCall } | { readonly service: 'fetch'; readonly call: FetchCall }
export type ServiceResult = KeyValueResult | FetchResult

/** Runs a call of a worker thread. */
export function runService(services: PluginServices, { service, call }: ServiceCall): Promise<ServiceResult> {
  return service === 'fetch' ? services.fetch(call) : services.keyValue(call)
}

/** The `kv` of a plugin. */
export function createKv(run: PluginServices['keyValue']): PluginKv {
  return {
    get: (key) => run({ operation: 'get', key }) as Promise<string | undefined>,
    set: async (key, value, options) => run({ operation: 'set', key, value, ttlMs: msOf(options) }) as Promise<undefined>,
    delete: (key) => run({ operation: 'delete', key }) as Promise<boolean>,
    increment: async (key, by = 1, options) => run({ operation: 'increment', key, by, ttlMs: msOf(options) }) as Promise<number>,
  }
}

/** Checked here, because a process sends JSON, which has neither NaN nor Infinity. */
function msOf(options: PluginKvOptions | undefined): number | undefined {
  const ttl: unknown = options?.ttl
  if (ttl === undefined || ttl === Infinity) return undefined
  if (typeof ttl !== 'number' || !(ttl > 0)) throw new TypeError('ttl is not a positive number of seconds')
  return ttl * 1000
}
