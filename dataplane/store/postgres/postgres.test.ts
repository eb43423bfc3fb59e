import { afterEach, describe, expect, test } from '@jest/globals'
import { serveSockets } from '../../testing/socket-server.ts'
import { connectPostgres, type PostgresConnection } from './connection.ts'
import { readPostgresSettings, type PostgresSettings } from './settings.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** A message of the server. */
function message(type: string, ...parts: readonly (string | number | Buffer)[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => {
      if (typeof part !== 'number') return Buffer.from(part)
      const bytes = Buffer.alloc(4)
      bytes.writeInt32BE(part)
      return bytes
    }),
  )
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const READY = message('Z', 'I')
const short = (value: number): Buffer => Buffer.from([value >> 8, value & 255])
/** One row with one column of a type, by its id. */
const row = (name: string, type: number, value: string): Buffer =>
  Buffer.concat([
    message('T', short(1), `${name}\0`, 0, short(0), type, short(4), -1, short(0)),
    message('D', short(1), value.length, value),
    message('C', 'SELECT 1\0'),
  ])
const failure = (code: string, text: string): Buffer => message('E', `SERROR\0C${code}\0M${text}\0\0`)

/** A server of the protocol of PostgreSQL; `respond` gets the text of a statement. Undefined: never. */
async function serve(respond: (statement: string) => Buffer | undefined): Promise<number> {
  const { port, close } = await serveSockets((socket) => {
    let isOpen = false
    socket.on('data', (data) => {
      if (!isOpen) {
        isOpen = true
        socket.write(Buffer.concat([message('R', 0), READY]))
        return
      }
      // Q: the statement; P: parse, with an empty name.
      const text = data.toString('latin1')
      const statement = text.startsWith('P') ? text.slice(6, text.indexOf('\0', 6)) : text.slice(5, -1)
      if (text.startsWith('X')) return
      const response = respond(statement)
      if (response !== undefined) socket.write(Buffer.concat([...(text.startsWith('P') ? [message('1'), message('2')] : []), response, READY]))
    })
  })
  closing.push(close)
  return port
}

async function connect(port: number): Promise<PostgresConnection> {
  const settings = readPostgresSettings('config.postgres', { url: `postgres://u@127.0.0.1:${port}/d?sslmode=disable` })
  if (typeof settings === 'string') throw new Error(settings)
  const connection = connectPostgres(settings, schema)
  closing.push(() => connection.close())
  await connection.opened
  return connection
}

const schema = { name: 'things', version: 1, source: 'CREATE TABLE things (version integer);' }
/** The responses of a database with the tables. */
const known = (statement: string): Buffer | undefined => {
  if (statement.includes('to_regclass')) return row('id', 25, 'things')
  if (statement.startsWith('SELECT version')) return row('version', 23, '1')
  return undefined
}

describe('a connection to PostgreSQL', () => {
  test('creates the tables once, and returns rows', async () => {
    const statements: string[] = []
    const port = await serve((statement) => {
      statements.push(statement)
      if (statement.includes('to_regclass'))
        return Buffer.concat([message('T', short(1), 'id\0', 0, short(0), 25, short(4), -1, short(0)), message('C', 'SELECT 0\0')])
      if (statement.startsWith('BEGIN')) return message('C', 'COMMIT\0')
      return known(statement) ?? row('n', 23, '7')
    })
    const database = await connect(port)
    expect(await Promise.all([database.query(schema, 'SELECT n'), database.query(schema, 'SELECT n')])).toEqual([{ value: [{ n: 7 }] }, { value: [{ n: 7 }] }])
    expect(statements.filter((statement) => statement.includes('CREATE TABLE things'))).toEqual([
      expect.stringMatching(/^BEGIN; .*pg_advisory_xact_lock\(\d+\); CREATE TABLE things \(version integer\); COMMIT$/),
    ])
  })

  test('does not use the tables of a newer version', async () => {
    const port = await serve((statement) => (statement.startsWith('SELECT version') ? row('version', 23, '2') : known(statement)))
    expect(await (await connect(port)).query(schema, 'SELECT n')).toEqual({ error: 'things has version 2; this program knows 1', mayRun: false })
  })

  test('reports an error of the server, and goes on; tables that are missing are created again', async () => {
    let isThere = false
    const port = await serve((statement) => {
      if (statement.startsWith('BEGIN')) {
        isThere = true
        return message('C', 'COMMIT\0')
      }
      return known(statement) ?? (isThere ? row('n', 23, '7') : failure('42P01', 'relation does not exist'))
    })
    const database = await connect(port)
    expect(await database.query(schema, 'SELECT n')).toEqual({ error: 'relation does not exist', mayRun: false })
    expect(await database.query(schema, 'SELECT n')).toEqual({ value: [{ n: 7 }] })
  })

  test('says whether a statement may run after its failure, and asks a server that hangs no more for a while', async () => {
    let asked = 0
    const port = await serve((statement) => {
      const response = known(statement)
      if (response === undefined) asked++
      return response
    })
    const database = await connect(port)
    expect(await database.query(schema, 'SELECT n')).toEqual({ error: 'PostgreSQL did not respond in time', mayRun: true })
    for (let nth = 0; nth < 10; nth++) expect(await database.query(schema, 'SELECT n')).toEqual({ error: 'PostgreSQL did not respond in time', mayRun: false })
    expect(asked).toBe(1)
  })

  test('does not wait for a server that accepts connections and sends nothing', async () => {
    const { port, close } = await serveSockets(() => undefined)
    closing.push(close)
    const database = await connect(port)
    expect(await database.query(schema, 'SELECT n')).toEqual({ error: 'PostgreSQL did not respond in time', mayRun: false })
  })

  test('reports that the server cannot be reached', async () => {
    expect(await (await connect(1)).query(schema, 'SELECT n')).toEqual({ error: expect.stringContaining('ECONNREFUSED'), mayRun: false })
  })
})

describe('config.postgres', () => {
  test('names a database, with TLS by default', () => {
    expect(readPostgresSettings('config.postgres', { url: 'postgres://u%40:p@r.example/d', passwordFile: '/p' })).toEqual({
      host: 'r.example',
      port: 5432,
      database: 'd',
      user: 'u@',
      password: 'p',
      passwordFile: '/p',
      isTls: true,
      caFile: undefined,
    } satisfies PostgresSettings)
  })

  test.each([
    [{ url: 'http://a' }, /^config\.postgres\.url is not the URL of a database: give postgres:/],
    [{ url: 'postgres://u:secret@/d' }, /^config\.postgres\.url is not the URL/],
    [{ url: 'postgres://u:secret@a/' }, /^config\.postgres\.url names no database/],
    [{ url: 'postgres://a/d' }, /^config\.postgres\.url names no user/],
    [{ url: 'postgres://u:secret@a/d?sslmode=prefer' }, /sslmode="prefer": use disable or verify-full/],
    [{ url: 'postgres://u@a/d', caFile: './c' }, /^config\.postgres\.caFile is "\.\/c": give an absolute path/],
  ])('%j is invalid, and the message has no secret', (section, text) => {
    const problem = readPostgresSettings('config.postgres', section)
    expect(problem).toMatch(text)
    expect(problem).not.toContain('secret')
  })
})
