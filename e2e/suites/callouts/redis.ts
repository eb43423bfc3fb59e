import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate } from '../../harness/certificates.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram, type Program } from '../../harness/program/program.ts'

/** Debian's Redis server on localhost with TLS and a password. */
export class Redis {
  readonly port: number
  /** Files for clients, absolute paths. */
  readonly files: { readonly password: string; readonly authority: string }
  readonly #directory: string
  readonly #isDurable: boolean
  #program: Program | undefined

  private constructor(directory: string, port: number, isDurable: boolean) {
    this.#directory = directory
    this.#isDurable = isDurable
    this.port = port
    this.files = { password: join(directory, 'password'), authority: join(directory, 'ca.crt') }
  }

  /** `isDurable`: each command is in a file before its response. Default: the data ends with the process, and is bounded as for caches. */
  static async start({ isDurable = false } = {}): Promise<Redis> {
    const [port = 0] = await findFreePorts(1)
    const server = new Redis(mkdtempSync(join(tmpdir(), 'redis-')), port, isDurable)
    const authority = makeCertificate({ name: 'authority', isAuthority: true })
    const { certificate, privateKey } = makeCertificate({ name: 'localhost', issuer: authority })
    writeFileSync(server.files.password, 'p@ss:word/1\n')
    writeFileSync(server.files.authority, authority.certificate)
    writeFileSync(join(server.#directory, 'server.crt'), certificate)
    writeFileSync(join(server.#directory, 'server.key'), privateKey, { mode: 0o600 })
    await server.resume()
    return server
  }

  /** Starts the server again after `stop`. */
  async resume(): Promise<void> {
    const settings = {
      port: '0',
      'tls-port': String(this.port),
      bind: '127.0.0.1 ::1',
      'tls-cert-file': 'server.crt',
      'tls-key-file': 'server.key',
      'tls-auth-clients': 'no',
      requirepass: 'p@ss:word/1',
      save: '',
      ...(this.#isDurable ? { appendonly: 'yes', appendfsync: 'always' } : { maxmemory: '16mb', 'maxmemory-policy': 'allkeys-lru' }),
    }
    writeFileSync(
      join(this.#directory, 'redis.conf'),
      Object.entries(settings)
        .map(([name, value]) => `${name} ${value === '' ? '""' : value}\n`)
        .join('') + `dir ${this.#directory}\n`,
    )
    this.#program = startProgram({ name: 'redis', command: 'redis-server', args: [join(this.#directory, 'redis.conf')], cwd: this.#directory })
    await this.#program.waitForLine(/Ready to accept connections/, 120_000)
  }

  /** Ends the server and all connections at once. */
  async stop(): Promise<void> {
    this.signal('SIGCONT')
    this.signal('SIGKILL')
    await this.#program?.exited
    this.#program = undefined
  }

  /** Deletes the files of a server that is stopped. */
  erase(): void {
    rmSync(join(this.#directory, 'appendonlydir'), { recursive: true, force: true })
  }

  signal(name: NodeJS.Signals): void {
    this.#program?.signal(name)
  }

  async delete(): Promise<void> {
    await this.stop()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
