import { spawn } from 'node:child_process'
import { constants, type BigIntStats } from 'node:fs'
import { access, copyFile, lstat, open, readdir, rename, unlink, readFile } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { basename, dirname, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { nodeCommand } from '../../runtime/node-command.ts'
import { digestOf, type ConfigFileOptions } from '../file/problem.ts'
import type { EditChange, EditorInput, EditorOutput } from './types.ts'

/** Why a file cannot be changed. `status` is that of the response. */
export class EditRefusal extends Error {
  readonly status: 403 | 409 | 413

  constructor(status: 403 | 409 | 413, message: string) {
    super(message)
    this.status = status
  }
}

/** `editor.ts`, or its bundle. */
const EDITOR = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './editor.ts' : './file-editor.js', import.meta.url))
/** Larger files are edited by hand. */
const MAX_FILE = 1024 * 1024
/** Copies of the file that are kept beside it. */
const MAX_BACKUPS = 10
/** A process that reads and changes a file takes less than a second. */
const EDITOR_MS = 20_000

/** Changes a config file: in a process of its own, because the libraries are large and parsing takes time. One change at a time. */
export class FileEdits {
  readonly #path: string
  readonly #options: ConfigFileOptions
  #last: Promise<unknown> = Promise.resolve()

  constructor(path: string, options: ConfigFileOptions = {}) {
    this.#path = resolve(path)
    this.#options = options
  }

  get path(): string {
    return this.#path
  }

  /** What the file has. */
  read(): Promise<EditorOutput> {
    return this.#inTurn(() => this.#run(undefined))
  }

  /** The result of changes; nothing is written. */
  preview(revision: string, changes: readonly EditChange[]): Promise<EditorOutput> {
    return this.#inTurn(() => this.#change(revision, changes))
  }

  /** Writes the changes if they are valid; `backup` is the path of a copy of the file before. */
  apply(revision: string, changes: readonly EditChange[]): Promise<EditorOutput & { readonly backup?: string }> {
    return this.#inTurn(async () => {
      const output = await this.#change(revision, changes)
      if (output.text === undefined || output.problems.length > 0) return output
      const backup = await this.#write(output.text, revision)
      return { ...output, revision: digestOf(output.text), backup }
    })
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#last.then(run, run)
    this.#last = result.catch(() => undefined)
    return result
  }

  async #change(revision: string, changes: readonly EditChange[]): Promise<EditorOutput> {
    await this.#checkWritable()
    const output = await this.#run(changes)
    if (output.revision !== revision) throw this.#stale()
    return output
  }

  #stale(): EditRefusal {
    return new EditRefusal(409, `${basename(this.#path)} was changed since it was read; read it again, and make the change once more`)
  }

  async #run(changes: readonly EditChange[] | undefined): Promise<EditorOutput> {
    await this.#stat()
    const input: EditorInput = { path: this.#path, options: this.#options, ...(changes && { changes }) }
    const [program, ...before] = nodeCommand()
    const child = spawn(program, [...before, EDITOR], { stdio: ['pipe', 'pipe', 'pipe'], timeout: EDITOR_MS })
    const ended = new Promise<number | null>((done, failed) => child.on('error', failed).on('close', done))
    // The process may end before it has read everything.
    child.stdin.on('error', () => undefined).end(JSON.stringify(input))
    const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
    // The message of an exception could quote the file.
    if (code !== 0)
      throw new Error(`the process that changes the config file ended with code ${String(code)}: ${/^\w*Error(?: \[\w+\])?/m.exec(errors)?.[0] ?? 'no cause'}`)
    return JSON.parse(output) as EditorOutput
  }

  async #stat(): Promise<BigIntStats> {
    const name = basename(this.#path)
    const stats = await lstat(this.#path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
      throw new EditRefusal(409, `${name} cannot be read: ${error.code ?? error.message}`)
    })
    if (stats.isSymbolicLink())
      throw new EditRefusal(403, `${name} is a symbolic link, which a change would replace by a file; start the gateway with the path of the file itself`)
    if (!stats.isFile()) throw new EditRefusal(403, `${name} is not a regular file`)
    if (stats.size > MAX_FILE) throw new EditRefusal(413, `${name} is larger than ${MAX_FILE} bytes; edit the file`)
    return stats
  }

  /** The superuser may write everywhere: the mode says what the owner wants. */
  async #checkWritable(): Promise<BigIntStats> {
    const stats = await this.#stat()
    const name = basename(this.#path)
    if ((stats.mode & 0o222n) === 0n) throw new EditRefusal(403, `${name} is read-only; permit writing (chmod u+w), or edit another copy`)
    if (stats.nlink > 1n) throw new EditRefusal(403, `${name} has another hard link, which would keep the old content; remove the link`)
    for (const path of [this.#path, dirname(this.#path)])
      await access(path, constants.W_OK).catch(() => {
        throw new EditRefusal(403, `the gateway may not write ${path === this.#path ? name : 'the directory of ' + name}`)
      })
    return stats
  }

  /** Replaces the file in one step. Returns the path of the copy. */
  async #write(content: string, revision: string): Promise<string> {
    const stats = await this.#checkWritable()
    const directory = dirname(this.#path)
    const temporary = join(directory, `.${basename(this.#path)}.${randomBytes(6).toString('hex')}.tmp`)
    try {
      const file = await open(temporary, 'wx', 0o600)
      try {
        await file.writeFile(content)
        await file.chmod(Number(stats.mode & 0o7777n))
        if (process.getuid?.() === 0) await file.chown(Number(stats.uid), Number(stats.gid))
        await file.sync()
      } finally {
        await file.close()
      }
      const backup = await this.#backUp(stats)
      if (digestOf(await readFile(this.#path)) !== revision) throw this.#stale()
      await rename(temporary, this.#path)
      return backup
    } catch (error) {
      await unlink(temporary).catch(() => undefined)
      throw error
    }
  }

  async #backUp({ mode, uid, gid }: BigIntStats): Promise<string> {
    const [directory, name] = [dirname(this.#path), basename(this.#path)]
    const path = join(directory, `${name}.${new Date().toISOString().replaceAll(/[:.]/g, '-')}.bak`)
    await copyFile(this.#path, path, constants.COPYFILE_EXCL)
    const file = await open(path, 'r+')
    try {
      await file.chmod(Number(mode & 0o7777n))
      if (process.getuid?.() === 0) await file.chown(Number(uid), Number(gid))
      await file.sync()
    } finally {
      await file.close()
    }
    const isBackup = (one: string): boolean => one.startsWith(`${name}.`) && /^\d{4}-\d\d-\d\dT[\d-]+Z\.bak$/.test(one.slice(name.length + 1))
    const old = (await readdir(directory)).filter(isBackup).sort().slice(0, -MAX_BACKUPS)
    for (const one of old) await unlink(join(directory, one)).catch(() => undefined)
    return path
  }
}
