import { closeSync, existsSync, openSync, readSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { DatabaseSync } from 'node:sqlite'

/** How a SQLite file of this program is told from those of others. */
export interface SqliteForm {
  /** In the header of the file, as `application_id`. */
  readonly applicationId: number
  /** What the file is, such as `ledger`. */
  readonly what: string
  /** The version that this program writes, as `user_version`. */
  readonly version: number
  /** For each version that was written without an application id: a table of it with some of its columns. */
  readonly unmarked: Readonly<Record<number, readonly [table: string, ...columns: string[]]>>
}

/** Bytes of the header of a SQLite file (https://www.sqlite.org/fileformat.html, section 1.3). */
const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'
const USER_VERSION = 60
const APPLICATION_ID = 68
const SQLITE_BUSY = 5

/**
 * Throws if a file is not of this program, or of a newer version. Neither the file nor its directory is changed. Returns whether the file has
 * content.
 */
export function checkSqliteFile(path: string, { applicationId, what, version: newest, unmarked }: SqliteForm): boolean {
  const header = readHeader(path)
  if (header === undefined) return false
  if (header.length < HEADER_BYTES || header.toString('latin1', 0, MAGIC.length) !== MAGIC) throw new Error('file is not a database')
  const id = header.readUInt32BE(APPLICATION_ID)
  const foreign = new Error(`it is a database of another program; name a ${what}, or a file that does not exist`)
  if (id !== 0 && id !== applicationId) throw foreign
  // The header in the file may be older than what a process that was killed has left in the write-ahead log.
  const { version, isKnown } = id === applicationId ? { version: header.readUInt32BE(USER_VERSION), isKnown: true } : readSchema(path, unmarked)
  if (!isKnown) throw foreign
  if (version > newest) throw new Error(`the ${what} has version ${version}; this program knows ${newest}`)
  return true
}

function readHeader(path: string): Buffer | undefined {
  if (!existsSync(path)) return undefined
  const file = openSync(path, 'r')
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    const length = readSync(file, header)
    return length === 0 ? undefined : header.subarray(0, length)
  } finally {
    closeSync(file)
  }
}

/** Reads the tables of a file without an application id. An empty database is known. */
function readSchema(path: string, unmarked: SqliteForm['unmarked']): { readonly version: number; readonly isKnown: boolean } {
  const url = pathToFileURL(path)
  // Otherwise SQLite makes files beside one that has none.
  if (!existsSync(`${path}-wal`)) url.searchParams.set('immutable', '1')
  const database = new DatabaseSync(url, { readOnly: true, timeout: 1000 })
  try {
    const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'])
    const count = Number(database.prepare('SELECT count(*) AS count FROM sqlite_schema').get()?.['count'])
    if (count === 0) return { version, isKnown: version === 0 || unmarked[version] === undefined }
    const [table, ...columns] = unmarked[version] ?? ['']
    const there = new Set(
      database
        .prepare('SELECT name FROM pragma_table_info(?)')
        .all(table)
        .map(({ name }) => name),
    )
    return { version, isKnown: there.size > 0 && columns.every((name) => there.has(name)) }
  } catch (error) {
    // A process that uses it alone: opening it fails too.
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return { version: 0, isKnown: true }
    throw error
  } finally {
    database.close()
  }
}
