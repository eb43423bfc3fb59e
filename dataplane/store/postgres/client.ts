import pg from 'pg'
import { readPasswordFile, tlsNameOf } from '../../runtime/server-client.ts'
import type { PostgresSettings } from './settings.ts'

/**
 * Options of a connection.
 * @param ca PEM certificates of the authority; undefined: those of Node
 */
export function connectionOptions(
  { host, port, database, user, password = '', passwordFile, isTls }: PostgresSettings,
  ca: string | undefined,
): pg.ClientConfig {
  return {
    host,
    port,
    database,
    user,
    // A function keeps the driver from reading the environment and files of the user.
    password: async () => (passwordFile === undefined ? password : readPasswordFile(passwordFile)),
    ssl: isTls ? { ca, ...tlsNameOf(host) } : false,
    keepAlive: true,
  }
}

/** Classes of errors after which the same statement may succeed on another connection or later: connection, resources, operator intervention, serialization. */
const LATER = /^(08|40|53|57|58|25006)/

/** Whether the server could not be reached, ended the connection, or cannot work at the moment. Errors without a code of SQL are those of the connection. */
export const isUnreachable = (error: unknown): boolean => !(error instanceof pg.DatabaseError) || error.code === undefined || LATER.test(error.code)
