import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate } from '../../harness/certificates.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram, type Program } from '../../harness/program/program.ts'

/** Directory of Debian's PostgreSQL programs, which are not on PATH. */
function programs(): string {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : []
  const version = versions.sort((a, b) => Number(b) - Number(a)).find((name) => existsSync(`/usr/lib/postgresql/${name}/bin/initdb`))
  if (version === undefined) throw new Error('PostgreSQL is missing: e2e/suites/callouts/run installs it')
  return `/usr/lib/postgresql/${version}/bin`
}

/** PostgreSQL does not run as root. */
const NOBODY = 65_534
const unprivileged = process.getuid?.() === 0 ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []

function run(command: string, args: readonly string[]): void {
  const [first = command, ...rest] = [...unprivileged, command, ...args]
  execFileSync(first, rest, { stdio: 'pipe', cwd: tmpdir() })
}

/** A PostgreSQL server on 127.0.0.1 with TLS, whose superuser is `ledger`. */
export class Postgres {
  readonly port: number
  /** Files for clients, absolute paths. */
  readonly files: { readonly password: string; readonly authority: string }
  readonly #directory: string
  #program: Program | undefined

  private constructor(directory: string, port: number) {
    this.#directory = directory
    this.port = port
    this.files = { password: join(directory, 'password'), authority: join(directory, 'ca.crt') }
  }

  static async start(): Promise<Postgres> {
    const [port = 0] = await findFreePorts(1)
    const server = new Postgres(mkdtempSync(join(tmpdir(), 'postgres-')), port)
    server.#create()
    await server.resume()
    return server
  }

  #create(): void {
    const authority = makeCertificate({ name: 'authority', isAuthority: true })
    const { certificate, privateKey } = makeCertificate({ name: 'localhost', issuer: authority })
    writeFileSync(this.files.password, 'p@ss:word/1\n')
    writeFileSync(this.files.authority, authority.certificate)
    writeFileSync(join(this.#directory, 'server.crt'), certificate)
    writeFileSync(join(this.#directory, 'server.key'), privateKey, { mode: 0o600 })
    chmodSync(this.#directory, 0o755)
    if (unprivileged.length > 0) for (const path of ['', 'server.key', 'server.crt', 'password']) chownSync(join(this.#directory, path), NOBODY, NOBODY)
    this.#createData()
  }

  #createData(): void {
    run(join(programs(), 'initdb'), [
      '-D',
      join(this.#directory, 'data'),
      '-U',
      'ledger',
      '-A',
      'scram-sha-256',
      `--pwfile=${this.files.password}`,
      '-E',
      'UTF8',
      '--no-sync',
    ])
  }

  /** Starts the server again after `stop`. */
  async resume(): Promise<void> {
    const [first, ...rest] = [...unprivileged, join(programs(), 'postgres')]
    const settings = {
      port: this.port,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      ssl: 'on',
      fsync: 'off',
      ssl_cert_file: '../server.crt',
      ssl_key_file: '../server.key',
    }
    const args = [...rest, '-D', join(this.#directory, 'data'), ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
    this.#program = startProgram({ name: 'postgres', command: first, args })
    await this.#program.waitForLine(/database system is ready to accept connections/, 120_000)
  }

  /** Ends the server and all connections at once. */
  async stop(): Promise<void> {
    // Without a checkpoint, as after a crash.
    this.#program?.signal('SIGQUIT')
    await this.#program?.exited
    this.#program = undefined
  }

  /** Deletes the data of a server that is stopped. */
  erase(): void {
    rmSync(join(this.#directory, 'data'), { recursive: true, force: true })
    this.#createData()
  }

  /** Stops all processes of the server where they are, or continues them. */
  freeze(isFrozen: boolean): void {
    const pid = this.#program?.pid
    if (pid === undefined) return
    // Each process is the leader of a group of its own.
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
    for (const each of isFrozen ? [pid, ...children] : [...children, pid]) process.kill(each, isFrozen ? 'SIGSTOP' : 'SIGCONT')
  }

  async delete(): Promise<void> {
    await this.stop()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
