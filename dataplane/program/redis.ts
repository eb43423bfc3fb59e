import type { RedisConnection } from '../store/redis/connection.ts'
import type { RedisSettings } from '../store/redis/settings.ts'
import { scriptStores, valueStores } from '../runtime/value-store.ts'
import type { Logging } from '../observe/telemetry/log.ts'
import type { Registry } from '../observe/telemetry/metrics/registry.ts'

/** Connects a thread to Redis, for its caches and budgets. Undefined without settings. Rejects if the certificates cannot be read. */
export async function openRedis(settings: RedisSettings | undefined, logging: Logging, registry: Registry): Promise<RedisConnection | undefined> {
  if (settings === undefined) return undefined
  // Loaded on demand: most processes have no Redis.
  const { connectRedis } = await import('../store/redis/connection.ts')
  const connection = connectRedis({ settings, log: logging.logger('redis'), registry })
  valueStores.set(registry, connection)
  scriptStores.set(registry, connection)
  // Requests that are charged in Redis would be rejected.
  await connection.opened
  return connection
}
