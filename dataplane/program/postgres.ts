import type { PostgresConnection } from '../store/postgres/connection.ts'
import type { PostgresSettings } from '../store/postgres/settings.ts'
import { statementStores } from '../runtime/value-store.ts'
import type { Registry } from '../observe/telemetry/metrics/registry.ts'

/** Connects a thread to PostgreSQL, for its budgets. Undefined without settings. Rejects if the certificates cannot be read. */
export async function openPostgres(settings: PostgresSettings | undefined, registry: Registry): Promise<PostgresConnection | undefined> {
  if (settings === undefined) return undefined
  // Loaded on demand: most processes have no database.
  const [{ connectPostgres }, { COUNTERS }] = await Promise.all([import('../store/postgres/connection.ts'), import('../policy/budgets/statements.ts')])
  const connection = connectPostgres(settings, COUNTERS)
  statementStores.set(registry, connection)
  // Requests that are charged in it would be rejected.
  await connection.opened
  return connection
}
